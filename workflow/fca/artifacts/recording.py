"""In: batches of coefficients and losses. Out: a labelled Zarr store, and back.

A recording is a Zarr v3 group that `xarray.open_zarr` opens with labels. One Zarr shard of
`coefficients` holds the inputs of one batch, so a batch is one write and one read; inside it
every input is a chunk of its own, so a donor is read without its neighbours. Compression is
lossless (Blosc zstd with bit shuffle); bfloat16 values are exact in float32.

A large set is recorded in several shards, one recording each; together they are read as one.
"""

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr
import zarr
from numpy.typing import NDArray
from zarr.codecs import BloscCodec

from fca.arithmetic.interventions import Labels
from fca.arithmetic.schema import VARIABLES
from fca.errors import FcaError

RECORDING = "recording.zarr"  # in an artifact of the coefficients stage
OWN = (
    "batch_size",
    "logits_sha256",
    "processor",
    "shard",
)  # attributes that shards of one set need not share
COMPRESSOR = BloscCodec(cname="zstd", clevel=3, shuffle="bitshuffle")


def put(group: zarr.Group, name: str, values: NDArray, variable: str | None = None) -> None:
    """Store a whole small array under its schema's dimensions, unit and meaning."""
    spec = VARIABLES.get(variable or name)
    dims = spec.dims if spec else ("coefficient",)  # a site's own label, such as stream
    text = values.dtype.kind in "UO"
    array = group.create_array(
        name,
        shape=values.shape,
        dtype="str" if text else values.dtype,
        dimension_names=dims,
        chunks=values.shape if values.size else "auto",
        compressors=COMPRESSOR if not text else "auto",
        attributes={"units": spec.unit, "long_name": spec.meaning} if spec else {},
    )
    array[...] = values.astype(object) if text else values


class Writer:
    """Writes a recording batch by batch, each while the next one computes.

    `close` waits for the last write and raises what went wrong.
    """

    def __init__(
        self,
        path: Path,
        *,
        inputs: int,
        batch_size: int,
        tokens: NDArray,
        document: NDArray,
        offset: NDArray,
        token_axis: int,
        coordinates: Mapping[str, NDArray],
        attributes: Mapping[str, Any],
    ):
        """tokens [input, token]; token_axis: coefficient tokens (1 for sites without tokens);
        coordinates: labels of the coefficient axis, empty for a model without controllers.
        """
        # xarray's convention: what a group lists here is opened as a coordinate
        labels = " ".join(["document", "offset", "target", *coordinates])
        self.group = zarr.create_group(path, attributes={**attributes, "coordinates": labels})
        self.arrays: dict[str, zarr.Array] = {}
        put(self.group, "tokens", tokens.astype(np.int32))
        put(self.group, "document", document)
        put(self.group, "offset", offset)
        put(self.group, "target", np.arange(1, tokens.shape[1]))
        for name, values in coordinates.items():
            put(self.group, name, np.asarray(values))
        count = len(coordinates["layer"]) if coordinates else 0
        self._create("nll", (inputs, tokens.shape[1] - 1), batch_size)
        if count:
            self._create("coefficients", (inputs, token_axis, count), batch_size)
        self.pool = ThreadPoolExecutor(max_workers=1)
        self.pending: Future | None = None

    def _create(self, name: str, shape: tuple[int, ...], batch_size: int) -> None:
        spec = VARIABLES[name]
        self.arrays[name] = self.group.create_array(
            name,
            shape=shape,
            dtype=spec.dtype,
            dimension_names=spec.dims,
            chunks=(1, *shape[1:]),
            shards=(batch_size, *shape[1:]),
            compressors=COMPRESSOR,
            attributes={"units": spec.unit, "long_name": spec.meaning},
        )

    def write(self, inputs: slice, nll: NDArray, coefficients: NDArray | None) -> None:
        """Queue one batch; waits for the one before, so at most two are in memory."""
        if self.pending is not None:
            self.pending.result()
        self.pending = self.pool.submit(self._write, inputs, nll, coefficients)

    def _write(self, inputs: slice, nll: NDArray, coefficients: NDArray | None) -> None:
        self.arrays["nll"][inputs] = nll
        if coefficients is not None:
            self.arrays["coefficients"][inputs] = coefficients

    def close(self, attributes: Mapping[str, Any]) -> None:
        """Wait for the last write, raise what went wrong, and add what is known only now."""
        try:
            if self.pending is not None:
                self.pending.result()
        finally:
            self.pool.shutdown()
        self.group.attrs.update(attributes)


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
    alike = [{k: v for k, v in part.attrs.items() if k not in OWN} for part in parts]
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
