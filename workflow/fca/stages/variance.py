"""In: the evaluation recording. Out: which factors the coefficients vary with.

Writes tables/variance.csv (term, sum_of_squares, degrees_of_freedom, share with its interval), icc.csv
(intraclass correlations), captured.csv (share of variance that each static profile keeps out of
sample), summary.json (mean, deviation) and maps.npz (mean and deviation over inputs, [layer,
token], for the heat map).
"""

import json
from pathlib import Path

import numpy as np

from fca.progress import progress
from fca.recordings.reading import array, open_recordings
from fca.recordings.tables import write_table
from fca.stages.arguments import Profiles, Recording
from fca.statistics.intervals import Bootstrap
from fca.statistics.variance import Decomposition
from fca.statistics.variance_shares import ALL, captured, intraclass, missed, variance_shares


def variance(
    into: Path,
    *,
    evaluation: tuple[Recording, ...],
    profiles: Profiles,
    resamples: int,
    confidence: float,
    seed: int,
) -> None:
    """Decompose the variance of the coefficients exactly, batch by batch.

    A second pass over the batches finds what each input adds, for the intervals; a third, through
    dask, how well the calibration set's profiles predict the evaluation set.
    """
    recording = open_recordings(evaluation)
    layers = recording["layer"].values
    stored = recording["coefficients"].data  # a dask array, one chunk per batch of inputs
    inputs, tokens, count = stored.shape
    decomposition = Decomposition(layers)
    names, member = np.unique(layers, return_inverse=True)
    to_layer = np.eye(len(names))[member] / np.bincount(member)  # [coefficient, layer]
    first = np.zeros((tokens, len(names)))
    second = np.zeros((tokens, len(names)))
    # one batch at a time: threads would each hold one, and batches of large models are large
    batches = [stored.blocks[i] for i in range(stored.numblocks[0])]
    for batch in progress(batches, "decompose variance"):
        chunk = batch.compute(scheduler="synchronous").astype(np.float64)
        decomposition.add(chunk)
        by_layer = chunk @ to_layer
        first += by_layer.sum(axis=0)
        second += np.square(by_layer).sum(axis=0)
    documents, bootstrap = recording["document"].values, Bootstrap(resamples, confidence, seed)
    parts = [decomposition.contributions(b.compute(scheduler="synchronous")) for b in batches]
    added = {key: np.concatenate([part[key] for part in parts]) for key in parts[0]}
    write_table(into, "variance", variance_shares(decomposition, added, documents, bootstrap))
    write_table(into, "icc", intraclass(decomposition, added, documents, bootstrap))
    mean_profile = np.asarray(array(profiles / "profiles.zarr", "mean")[...])
    errors = stored.map_blocks(
        missed, mean_profile, layers, drop_axis=[1, 2], new_axis=1,
        chunks=(stored.chunks[0], (len(ALL),)), dtype=np.float64, meta=np.empty((0, 0)),
    )  # fmt: skip
    kept = captured(errors.compute(scheduler="synchronous"), documents, bootstrap)
    write_table(into, "captured", kept)
    mean = first / inputs
    deviation = np.sqrt(np.maximum(second / inputs - mean**2, 0.0))
    np.savez(into / "maps.npz", layer=names, mean=mean.T, deviation=deviation.T)
    summary = {
        "mean": decomposition.mean,
        "deviation": float(np.sqrt(max(decomposition.total, 0.0) / stored.size)),
        "inputs": inputs,
        "tokens": tokens,
        "coefficients_per_token": count,
    }
    (into / "summary.json").write_text(json.dumps(summary, indent=1) + "\n")
