"""In: batches of coefficients and losses. Out: a recording, a labelled Zarr store.

A recording is a Zarr v3 group that `xarray.open_zarr` opens with labels. One Zarr shard of
`coefficients` holds the inputs of one batch, so a batch is one write and one read; inside it
every input is a chunk of its own, so a donor is read without its neighbours. Compression is
lossless (Blosc zstd with bit shuffle); bfloat16 values are exact in float32.
"""

from collections.abc import Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import zarr
from numpy.typing import NDArray
from zarr.codecs import BloscCodec

from fca.recordings.schema import VARIABLES

RECORDING = "recording.zarr"  # in an artifact of the coefficients stage
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
