"""In: a checkpoint, its evaluation recording, an intervention. Out: losses with it at some layers only.

Writes layers.zarr (nll [layer, repeat, input, target] in nats) and proofs.json; where the
intervention is not defined for this model, proofs.json alone, with the reason under "undefined".
"""

from pathlib import Path

import numpy as np
import torch
import xarray as xr
from numpy.typing import NDArray

from fca.arithmetic.interventions import draw, is_random
from fca.artifacts.parameters import Device, Read
from fca.artifacts.recording import labels_of, open_recording, reader
from fca.errors import FcaError, ProofError, Undefined
from fca.networks.checkpoint import load_checkpoint
from fca.networks.layer_map import changes, reusable, variants
from fca.networks.passes import batches
from fca.networks.passes import replay as replay_batches
from fca.networks.sites import Form
from fca.progress import progress
from fca.stages.replay import Source, check_multisets, is_static, static_source, write_proofs


def layers(
    into: Path,
    *,
    model: Read,
    evaluation: Read,
    profiles: Read,
    intervention: str,
    order: str,
    repeats: int,
    seed: int,
    device: Device = "cpu",
) -> None:
    """Replay an intervention layer by layer, reusing what the layers below compute.

    order: alone (one layer at a time), from_bottom or from_top (cumulative). Draws are
    the replay stage's. Raises ProofError where a controller ran, the untouched part differs from
    the live run in any bit, or a full replay of one variant differs from the map in any bit.
    """
    recording = open_recording(evaluation / "recording.zarr")
    facts = recording.attrs
    torch.set_num_threads(facts["threads"])
    network, sites = load_checkpoint(model, device, facts["precision"])
    forms = [[Form(f["token"], tuple(f["shape"]), f["dtype"]) for f in calls] for calls in facts["forms"]]
    read = reader(evaluation / "recording.zarr")
    tokens, size = recording["tokens"].values, facts["batch_size"]
    labels = recording["layer"].values
    draws = repeats if is_random(intervention) else 1
    proofs: dict = {"intervention": intervention, "order": order, "controller_runs": 0, "exact": None}
    try:
        sources = [
            static_source(intervention, profiles, read, labels)
            if is_static(intervention)
            else reassigned(intervention, recording, read, seed + repeat, size)
            for repeat in range(draws)
        ]
    except Undefined as reason:
        write_proofs(into, proofs | {"undefined": str(reason)})
        return

    def correct(batch: slice) -> NDArray:
        return read(np.arange(batch.start, batch.stop))

    modules = reusable(network)
    swapped, masks = changes(labels, order)
    live = recording["nll"].values
    losses = np.full((len(masks), draws, *live.shape), np.nan, dtype=np.float32)
    for repeat, source in enumerate(sources):
        base, other = (source, correct) if swapped else (correct, source)
        passes = variants(
            network, sites, forms, modules, tokens, base, other, masks, size
        )  # fmt: skip
        label = f"map {intervention}, {order}"
        for found in progress(passes, label, len(batches(len(tokens), size)) * (len(masks) + 1)):
            if found.variant is not None:
                losses[found.variant, repeat, found.inputs] = found.nll
            elif not swapped and not np.array_equal(found.nll, live[found.inputs]):
                raise ProofError("layer map: the untouched replay differs from the live run")
        middle = len(masks) // 2
        check_exact(network, sites, forms, tokens[:size], base, other, masks[middle], losses[middle, repeat])
    if not np.isfinite(losses).all():
        raise FcaError(f"layer map of {intervention}: a loss is NaN or infinite")
    dataset = xr.Dataset(
        {"nll": (("layer", "repeat", "input", "target"), losses)},
        coords={"layer": np.unique(labels), "target": recording["target"].values},
        attrs={"intervention": intervention, "order": order},
    )
    dataset.to_zarr(into / "layers.zarr", zarr_format=3, consolidated=False)
    write_proofs(into, proofs | {"exact": True})


def reassigned(intervention: str, recording: xr.Dataset, read, seed: int, batch_size: int) -> Source:
    """One draw of a reassignment, batch by batch, its multiset checked."""
    assignment = draw(intervention, labels_of(recording), seed)

    def source(batch: slice) -> NDArray:
        return assignment.gather(read, np.arange(batch.start, batch.stop))

    slices = batches(recording.sizes["input"], batch_size)
    check_multisets(intervention, source, read, slices, assignment.coefficients)
    return source


def check_exact(network, sites, forms, tokens, base: Source, other: Source, mask, mapped: NDArray) -> None:
    """A replay from the start, of the first batch and one variant, must equal the map bit for bit."""

    def whole(batch: slice) -> NDArray:
        return np.where(mask, other(batch), base(batch))

    full = next(iter(replay_batches(network, sites, forms, tokens, whole, len(tokens))))
    if not np.array_equal(full.nll, mapped[: len(tokens)]):
        raise ProofError("layer map: reusing the layers below changed a loss")
