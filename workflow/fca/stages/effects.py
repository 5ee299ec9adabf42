"""In: one model's replays. Out: penalties and retentions with intervals, and the proofs.

Writes effects.csv (one row per intervention), inputs.csv (loss of every input under every
intervention, nats per token) and proofs.json.
"""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import xarray as xr

from fca.arithmetic.effects import Bootstrap, tidy
from fca.arithmetic.effects import effects as estimate_effects
from fca.artifacts.parameters import Read
from fca.artifacts.recording import open_recording
from fca.errors import ProofError


def effects(
    into: Path,
    *,
    calibration: Read,
    evaluation: Read,
    replays: tuple[Read, ...],
    resamples: int,
    confidence: float,
    seed: int,
) -> None:
    """Compare every replay with the untouched one, paired by input.

    Raises ProofError where calibration and evaluation share a document.
    """
    recording = open_recording(evaluation / "recording.zarr")
    documents = recording["document"].values
    shared = np.intersect1d(documents, open_recording(calibration / "recording.zarr")["document"].values)
    if len(shared):
        raise ProofError(
            f"disjoint: {len(shared)} documents are in calibration and evaluation, "
            f"the first is document {shared[0]}"
        )
    losses: dict[str, np.ndarray] = {}
    rows: dict[str, dict] = {}
    proofs = []
    undefined: dict[str, str] = {}
    for folder in replays:
        proof = json.loads((folder / "proofs.json").read_text())
        proofs.append(proof)
        if "undefined" in proof:
            undefined[proof["intervention"]] = proof["undefined"]
            continue
        replay = xr.open_zarr(folder / "replay.zarr", consolidated=False, chunks=None)
        name = replay.attrs["intervention"]
        per_repeat = replay["nll"].values.mean(axis=2, dtype=np.float64)  # [repeat, input]
        losses[name] = per_repeat.mean(axis=0)
        of_repeats = per_repeat.mean(axis=1)
        rows[name] = {
            "repeats": len(of_repeats),
            "repeat_sd": of_repeats.std(ddof=1) if len(of_repeats) > 1 else "undefined",
        }
    table = tidy(estimate_effects(losses, documents, Bootstrap(resamples, confidence, seed)))
    for column in ("repeats", "repeat_sd"):
        table[column] = [rows[name][column] for name in table["intervention"]]
    table.to_csv(into / "effects.csv", index=False)
    live = recording["nll"].values.mean(axis=1, dtype=np.float64)
    frame = pd.DataFrame({"document": documents, "live": live, **losses})
    frame.rename_axis("input").to_csv(into / "inputs.csv")
    summary = {
        "identity": any(p["identity"] for p in proofs if p["intervention"] == "correct"),
        "controller_runs": sum(p["controller_runs"] for p in proofs),
        "still_running": sorted({path for p in proofs for path in p["still_running"]}),
        "multisets_kept": all(p["multisets_kept"] for p in proofs if p["multisets_kept"] is not None),
        "disjoint": len(shared) == 0,
        "undefined": undefined,
        "live_nll": float(live.mean()),
        "inputs": len(documents),
        "documents": len(np.unique(documents)),
    }
    (into / "proofs.json").write_text(json.dumps(summary, indent=1) + "\n")
