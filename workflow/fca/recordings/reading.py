"""In: recordings, one per shard. Out: one labelled data set, or coefficients of any inputs.

A large set is recorded in several shards, one recording each; together they are read as one.
"""

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import xarray as xr
import zarr
from numpy.typing import NDArray

from fca.errors import FcaError
from fca.interventions.assignments import Labels
from fca.recordings.writing import RECORDING

#: attributes that the shards of one set need not share
OF_SHARD = ("batch_size", "logits_sha256", "processor", "shard")


def open_recording(path: Path) -> xr.Dataset:
    """A recording with labels, lazily: one dask chunk per batch of inputs."""
    stored = array(path, "nll")
    batch = (stored.shards or stored.chunks)[0]
    dataset = xr.open_zarr(path, consolidated=False, chunks=None)
    large = [name for name in ("coefficients", "nll") if name in dataset]
    return dataset.assign({name: dataset[name].chunk(input=batch) for name in large})


def open_recordings(folders: Sequence[Path]) -> xr.Dataset:
    """The recordings of a set's shards as one, lazily. Raises FcaError where they do not fit.

    folders: artifacts of the coefficients stage, in the shards' order.
    """
    parts = [open_recording(folder / RECORDING) for folder in folders]
    found = [(part.attrs["shard"], part.attrs["shards"]) for part in parts]
    if found != [(i, len(parts)) for i in range(len(parts))]:
        shown = ", ".join(f"{shard + 1} of {shards}" for shard, shards in found)
        raise FcaError(f"the recordings are not all shards of one set, in order: {shown}")
    if len(parts) == 1:
        return parts[0]
    alike = [{k: v for k, v in part.attrs.items() if k not in OF_SHARD} for part in parts]
    if different := [key for key in alike[0] if any(a[key] != alike[0][key] for a in alike)]:
        raise FcaError(f"the shards of a recording differ in {', '.join(different)}")
    digests = [sha256 for part in parts for sha256 in part.attrs["logits_sha256"]]
    whole = xr.concat(
        parts, dim="input", data_vars="minimal", coords="minimal", compat="override", join="exact",
        combine_attrs="override",
    )  # fmt: skip
    return whole.assign_attrs(logits_sha256=digests)


def array(path: Path, name: str) -> zarr.Array:
    """One array of a Zarr group, unread."""
    found = zarr.open_group(path, mode="r")[name]
    if not isinstance(found, zarr.Array):
        raise FcaError(f"{path}: {name} is a group, not an array")
    return found


def reader(folders: Sequence[Path]) -> Callable[[NDArray], NDArray]:
    """read(inputs) -> coefficients [len(inputs), token, coefficient], in that order.

    folders: as of `open_recordings`; an input is read from whichever shard holds it.
    """
    shards = [array(folder / RECORDING, "coefficients") for folder in folders]
    lengths = [stored.shape[0] for stored in shards]
    ends = np.cumsum(lengths)

    def read(inputs: NDArray) -> NDArray:
        inputs = np.asarray(inputs)
        owner = np.searchsorted(ends, inputs, side="right")
        found = np.empty((len(inputs), *shards[0].shape[1:]), dtype=shards[0].dtype)
        for shard in np.unique(owner):
            here = owner == shard
            found[here] = selected(shards[shard], inputs[here] - (ends[shard] - lengths[shard]))
        return found

    return read


def selected(stored: zarr.Array, inputs: NDArray) -> NDArray:
    """Some inputs of one array, in that order; neighbours in one read."""
    if len(inputs) and (np.diff(inputs) == 1).all():
        return np.asarray(stored[int(inputs[0]) : int(inputs[-1]) + 1])
    return np.asarray(stored.oindex[inputs])


def labels_of(dataset: xr.Dataset) -> Labels:
    """What reassignments need to know of a recording."""
    return Labels(
        documents=dataset["document"].values,
        tokens=dataset.sizes["token"],
        layers=dataset["layer"].values,
    )
