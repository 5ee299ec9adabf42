"""In: a checkpoint, its evaluation recording, an intervention. Out: the losses under replay.

Writes replay.zarr (nll [repeat, input, target] in nats; kl, total_variation and top1_agreement
[repeat, compared input]), multisets.npz and proofs.json; where the intervention is not defined
for this model, proofs.json alone, with the reason under "undefined".
"""

from pathlib import Path

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from fca.errors import ProofError, Undefined
from fca.frozen.divergence import MEASURES, divergences
from fca.frozen.model import FrozenModel
from fca.frozen.passes import replay as replay_batches
from fca.frozen.playback import stays_live
from fca.progress import progress
from fca.recordings.replays import write_multisets, write_proofs
from fca.stages.arguments import Device, Model, Profiles, Recording
from fca.store.manifest import processor


def replay(
    into: Path,
    *,
    model: Model,
    evaluation: tuple[Recording, ...],
    profiles: Profiles,
    intervention: str,
    repeats: int,
    seed: int,
    compared: int = 0,
    shard: int = 0,
    device: Device = "cpu",
) -> None:
    """Run the frozen model, its controllers disabled, on kept or transformed coefficients.

    evaluation: all shards of the recording; shard: the one whose inputs are replayed. Its donors
    can lie in any of them, and draws are of the whole set, so that results do not depend on shards.

    compared: on how many inputs whole predictions are compared with the live ones, in passes of
    their own. Batches, precision and threads are the recording's, so that `correct` can be exact.
    Raises ProofError where a controller ran, `correct` differs from live in any bit of its logits
    or losses, or a reassignment changed a coefficient's multiset.
    """
    frozen = FrozenModel.open(model, evaluation, device, shard)
    proofs: dict = {
        "intervention": intervention,
        "shard": shard,
        "shards": len(evaluation),
        "controller_runs": 0,
        "still_running": stays_live(frozen.sites),
        "identity": None,
        "multisets_kept": None,
    }
    try:
        sources, multisets = frozen.sources(intervention, profiles, repeats, seed)
    except Undefined as reason:
        write_proofs(into, proofs | {"undefined": str(reason)})
        return
    write_multisets(into, multisets)
    if multisets and frozen.whole:
        proofs["multisets_kept"] = True  # or `sources` would have raised; of shards, once they are joined
    live, draws = frozen.recording["nll"], len(sources)
    count = min(max(compared - frozen.first, 0), len(frozen.tokens))  # the first ones of the whole set
    apart = {name: np.empty((draws, count)) for name in MEASURES}
    losses = np.empty((draws, *live.shape), dtype=np.float32)
    common = (frozen.network, frozen.sites, frozen.forms, frozen.tokens)
    for repeat, source in enumerate(sources):
        label = f"replay {intervention}" + (f" {repeat + 1} of {draws}" if draws > 1 else "")
        passes = replay_batches(*common, source, frozen.batch_size)
        digests, runs = [], 0
        for batch in progress(passes, label, len(frozen.slices)):
            losses[repeat, batch.inputs] = batch.nll
            digests.append(batch.logits_sha256)
            runs = batch.controller_runs
        proofs["controller_runs"] += runs
        if intervention == "correct":
            check_identity(frozen.recording, losses[repeat], digests)
            proofs["identity"] = True
        for name, values in divergences(*common, source, frozen.batch_size, count).items():
            apart[name][repeat] = values
    dataset = xr.Dataset(
        {
            "nll": (("repeat", "input", "target"), losses),
            **{name: (("repeat", "compared"), values) for name, values in apart.items()},
        },
        coords={name: frozen.recording[name].load() for name in ("document", "target")},
        attrs={"intervention": intervention, "seeds": [seed + r for r in range(draws)]},
    )
    dataset.to_zarr(into / "replay.zarr", zarr_format=3, consolidated=False)
    write_proofs(into, proofs)


def check_identity(recording: xr.Dataset, nll: NDArray, digests: list[str]) -> None:
    """`correct` must equal live bit for bit: the logits of every batch and every loss."""
    recorded = recording.attrs["logits_sha256"]
    wrong = [i for i, (a, b) in enumerate(zip(recorded, digests, strict=True)) if a != b]
    if not wrong and np.array_equal(recording["nll"].values, nll):
        return
    here, there = processor(), recording.attrs["processor"]
    elsewhere = (
        f"; recorded on {there}, replayed on {here}: record and replay on the same kind of machine"
        if here != there
        else ""
    )
    raise ProofError(
        f"identity: replaying the untouched coefficients differs from the live run in "
        f"{len(wrong)} of {len(recorded)} batches, the first is batch {(wrong or [0])[0]}{elsewhere}"
    )
