"""In: the evaluation recording. Out: which factors the coefficients vary with.

Writes variance.csv (term, sum_of_squares, degrees_of_freedom, share), summary.json (mean,
deviation) and maps.npz (mean and deviation over inputs, [layer, token], for the heat map).
"""

import json
from pathlib import Path

import numpy as np

from fca.arithmetic.variance import Decomposition
from fca.artifacts.parameters import Read
from fca.artifacts.recording import array, open_recording, shard
from fca.progress import progress


def variance(into: Path, *, evaluation: Read) -> None:
    """Decompose the variance of the coefficients exactly, in one pass over the batches."""
    recording = open_recording(evaluation / "recording.zarr")
    layers = recording["layer"].values
    stored = array(evaluation / "recording.zarr", "coefficients")
    inputs, tokens, _ = stored.shape
    decomposition = Decomposition(layers)
    names, member = np.unique(layers, return_inverse=True)
    to_layer = np.eye(len(names))[member] / np.bincount(member)  # [coefficient, layer]
    first = np.zeros((tokens, len(names)))
    second = np.zeros((tokens, len(names)))
    size = shard(stored)
    for start in progress(range(0, inputs, size), "decompose variance"):
        chunk = np.asarray(stored[start : start + size], dtype=np.float64)
        decomposition.add(chunk)
        by_layer = chunk @ to_layer
        first += by_layer.sum(axis=0)
        second += np.square(by_layer).sum(axis=0)
    decomposition.table().to_csv(into / "variance.csv", index=False)
    mean = first / inputs
    deviation = np.sqrt(np.maximum(second / inputs - mean**2, 0.0))
    np.savez(into / "maps.npz", layer=names, mean=mean.T, deviation=deviation.T)
    summary = {
        "mean": decomposition.mean,
        "deviation": float(np.sqrt(max(decomposition.total, 0.0) / stored.size)),
        "inputs": inputs,
        "tokens": tokens,
        "coefficients_per_token": stored.shape[2],
    }
    (into / "summary.json").write_text(json.dumps(summary, indent=1) + "\n")
