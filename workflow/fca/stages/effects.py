"""In: one model's replays. Out: penalties, retentions, factors and views with intervals; the proofs.

Writes tables/effects.csv (one row per intervention), factors.csv (interactions and Shapley shares),
sinks.csv, positions.csv and frequencies.csv (penalty by position and token frequency), layers.csv
(penalty by layer), divergence.csv (of predictions) beside it; inputs.csv (loss of every input under
every intervention, nats per token) and proofs.json.
"""

import json
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import numpy as np
import pandas as pd
import xarray as xr
from numpy.typing import NDArray

from fca.errors import ProofError
from fca.recordings.reading import open_recordings
from fca.recordings.replays import Replayed, by_shards, joined_proofs
from fca.recordings.tables import write_table
from fca.stages.arguments import LayerMap, Recording, Replay
from fca.statistics.effects import Losses, significance, tidy
from fca.statistics.effects import effects as estimate_effects
from fca.statistics.factors import factors, sinks
from fca.statistics.intervals import UNDEFINED, Bootstrap, by_document, cells, within
from fca.statistics.layer_penalties import COLUMNS, by_layer
from fca.statistics.token_classes import frequency_classes, penalties, position_classes

#: table -> what makes it from the losses of all interventions by document
OF_LOSSES: dict[str, Callable[[Losses], pd.DataFrame]] = {
    "factors": factors,
    "sinks": sinks,
}


def effects(
    into: Path,
    *,
    calibration: tuple[Recording, ...],
    evaluation: tuple[Recording, ...],
    replays: tuple[Replay, ...],
    maps: tuple[LayerMap, ...] = (),
    resamples: int,
    confidence: float,
    seed: int,
) -> None:
    """Compare every replay with the untouched one, paired by document. maps: of the layers stage.

    Replays and maps in shards are joined. Raises ProofError where calibration and evaluation share
    a document, or the shards of a reassignment together do not hold the recorded values.
    """
    recording = open_recordings(evaluation)
    before = open_recordings(calibration)
    documents = recording["document"].values
    check_disjoint(documents, before["document"].values)
    bootstrap = Bootstrap(resamples, confidence, seed)
    found = [Replayed.read(shards) for shards in by_shards(replays)]
    defined = {r.name: r for r in found if r.defined}
    losses = {name: r.by_input for name, r in defined.items()}
    table = tidy(estimate_effects(losses, documents, bootstrap))
    table = table.merge(significance(losses, documents, bootstrap), on="intervention")
    for column in ("repeats", "repeat_sd"):
        table[column] = [getattr(defined[name], column) for name in table["intervention"]]
    write_table(into, "effects", table)
    known = Losses.of(losses, documents, bootstrap)
    for name, statistic in OF_LOSSES.items():
        write_table(into, name, statistic(known))
    by_token = {name: r.by_token for name, r in defined.items()}
    tokens = recording["tokens"].values
    views = {
        "positions": position_classes(recording["target"].values),
        "frequencies": frequency_classes(tokens[:, 1:], before["tokens"].values),
    }
    for name, (classes, bounds) in views.items():
        write_table(into, name, penalties(by_token, classes, bounds, documents, bootstrap))
    live = recording["nll"].values.mean(axis=1, dtype=np.float64)  # equals `correct`, as is proven
    write_table(into, "divergence", divergence(defined.values(), documents, bootstrap))
    write_table(into, "layers", layer_maps(maps, live, documents, bootstrap))
    frame = pd.DataFrame({"document": documents, "live": live, **losses})
    frame.rename_axis("input").to_csv(into / "inputs.csv")
    summary = proofs([r.proofs for r in found]) | {
        "disjoint": np.intersect1d(documents, before["document"].values).size == 0,
        "live_nll": float(live.mean()),
        "inputs": len(documents),
        "documents": len(np.unique(documents)),
    }
    (into / "proofs.json").write_text(json.dumps(summary, indent=1) + "\n")


def divergence(found: Iterable[Replayed], documents: NDArray, bootstrap: Bootstrap) -> pd.DataFrame:
    """One row per intervention: inputs compared, and the mean over them of every measure."""
    rows: list[dict] = []
    for replayed in found:
        count = len(next(iter(replayed.measures.values()), ()))
        inputs = by_document(np.ones(count), documents[:count])
        estimates = {
            name: bootstrap.ratio(by_document(values, documents[:count]), inputs) if count else UNDEFINED
            for name, values in replayed.measures.items()
        }
        # but for kl, they lie between 0 and 1
        estimates = {name: e if name == "kl" else within(e) for name, e in estimates.items()}
        rows.append({"intervention": replayed.name, "inputs": count, **cells(estimates)})
    return pd.DataFrame(rows)


def layer_maps(
    folders: Sequence[Path], correct: NDArray, documents: NDArray, bootstrap: Bootstrap
) -> pd.DataFrame:
    """All maps' penalties by layer; maps that are undefined for the model are left out."""
    tables = [pd.DataFrame(columns=COLUMNS)]
    for shards in by_shards(folders):
        if "undefined" in joined_proofs(shards):
            continue
        found = [xr.open_zarr(shard / "layers.zarr", consolidated=False, chunks=None) for shard in shards]
        losses = np.concatenate([f["nll"].values.mean(axis=(1, 3), dtype=np.float64) for f in found], axis=1)
        what = (found[0].attrs["intervention"], found[0].attrs["order"], found[0]["layer"].values)
        tables.append(by_layer(*what, losses, correct, documents, bootstrap))
    return pd.concat(tables[1:] or tables, ignore_index=True)


def check_disjoint(evaluation: NDArray, calibration: NDArray) -> None:
    shared = np.intersect1d(evaluation, calibration)
    if len(shared):
        raise ProofError(
            f"disjoint: {len(shared)} documents are in calibration and evaluation, "
            f"the first is document {shared[0]}"
        )


def proofs(found: Sequence[dict]) -> dict:
    """The replays' proofs as one."""
    return {
        "identity": any(p["identity"] for p in found if p["intervention"] == "correct"),
        "controller_runs": sum(p["controller_runs"] for p in found),
        "still_running": sorted({path for p in found for path in p["still_running"]}),
        "multisets_kept": all(p["multisets_kept"] for p in found if p["multisets_kept"] is not None),
        "undefined": {p["intervention"]: p["undefined"] for p in found if "undefined" in p},
    }
