"""In: a checkpoint, its evaluation recording, an intervention. Out: losses with it at some layers only.

Writes layers.zarr (nll [layer, repeat, input, target] in nats) and proofs.json; where the
intervention is not defined for this model, proofs.json alone, with the reason under "undefined".
"""

from pathlib import Path

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from fca.errors import FcaError, ProofError, Undefined
from fca.frozen.layer_map import changes, reusable, variants
from fca.frozen.model import FrozenModel
from fca.frozen.passes import CoefficientsOf
from fca.frozen.passes import replay as replay_batches
from fca.progress import progress
from fca.recordings.replays import write_multisets, write_proofs
from fca.stages.arguments import Device, Model, Profiles, Recording


def layers(
    into: Path,
    *,
    model: Model,
    evaluation: tuple[Recording, ...],
    profiles: Profiles,
    intervention: str,
    order: str,
    repeats: int,
    seed: int,
    shard: int = 0,
    device: Device = "cpu",
) -> None:
    """Replay an intervention layer by layer, reusing what the layers below compute.

    shard: as of the replay stage, as are the draws. order: alone (one layer at a time), from_bottom
    or from_top (cumulative). Raises ProofError where a controller ran, the untouched part differs from
    the live run in any bit, or a full replay of one variant differs from the map in any bit.
    """
    frozen = FrozenModel.open(model, evaluation, device, shard)
    proofs: dict = {"intervention": intervention, "order": order, "controller_runs": 0, "exact": None}
    proofs |= {"shard": shard, "shards": len(evaluation)}
    try:
        sources, multisets = frozen.sources(intervention, profiles, repeats, seed)
    except Undefined as reason:
        write_proofs(into, proofs | {"undefined": str(reason)})
        return
    write_multisets(into, multisets)
    swapped, masks = changes(frozen.layers, order)
    live = frozen.recording["nll"].values
    losses = np.full((len(masks), len(sources), *live.shape), np.nan, dtype=np.float32)
    # All draws share one base, unless the base is what was drawn.
    groups: list[tuple[CoefficientsOf, list[CoefficientsOf], int]] = (
        [(source, [frozen.correct], draw) for draw, source in enumerate(sources)]
        if swapped
        else [(frozen.correct, sources, 0)]
    )
    for base, others, first in groups:
        passes = variants(
            frozen.network, frozen.sites, frozen.forms, reusable(frozen.network), frozen.tokens,
            base, others, masks, frozen.batch_size,
        )  # fmt: skip
        steps, runs = len(frozen.slices) * (1 + len(others) * len(masks)), 0
        for found in progress(passes, f"map {intervention}, {order}", steps):
            runs = found.controller_runs
            if found.draw is not None:
                losses[found.variant, first + found.draw, found.inputs] = found.nll
            elif not swapped and not np.array_equal(found.nll, live[found.inputs]):
                raise ProofError("layer map: the untouched replay differs from the live run")
        proofs["controller_runs"] += runs
        middle = len(masks) // 2
        for draw, other in enumerate(others, start=first):
            check_exact(frozen, base, other, masks[middle], losses[middle, draw])
    if not np.isfinite(losses).all():
        raise FcaError(f"layer map of {intervention}: a loss is NaN or infinite")
    dataset = xr.Dataset(
        {"nll": (("layer", "repeat", "input", "target"), losses)},
        coords={"layer": np.unique(frozen.layers), "target": frozen.recording["target"].values},
        attrs={"intervention": intervention, "order": order},
    )
    dataset.to_zarr(into / "layers.zarr", zarr_format=3, consolidated=False)
    write_proofs(into, proofs | {"exact": True})


def check_exact(
    frozen: FrozenModel, base: CoefficientsOf, other: CoefficientsOf, mask: NDArray, mapped: NDArray
) -> None:
    """A replay from the start, of the first batch and one variant, must equal the map bit for bit."""

    def whole(batch: slice) -> NDArray:
        return np.where(mask, other(batch), base(batch))

    tokens = frozen.tokens[: frozen.batch_size]
    passes = replay_batches(frozen.network, frozen.sites, frozen.forms, tokens, whole, len(tokens))
    if not np.array_equal(next(iter(passes)).nll, mapped[: len(tokens)]):
        raise ProofError("layer map: reusing the layers below changed a loss")
