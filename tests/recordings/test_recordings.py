"""Recordings are written batch by batch and read back as one, with labels."""

import numpy as np
import pytest
import xarray as xr
import zarr

from fca.errors import FcaError
from fca.recordings.reading import open_recording, open_recordings, reader
from fca.recordings.writing import Writer


@pytest.fixture
def recording(tmp_path, rng):
    coefficients = rng.normal(size=(10, 6, 3)).astype(np.float32)
    nll = rng.random((10, 5)).astype(np.float32)
    path = tmp_path / "recording.zarr"
    writer = Writer(
        path,
        inputs=10,
        batch_size=4,
        tokens=np.arange(60).reshape(10, 6),
        document=np.arange(10) // 2,
        offset=np.zeros(10, np.int64),
        token_axis=6,
        coordinates={"layer": np.arange(3), "channel": np.zeros(3, int), "site": np.array(["a", "b", "c"])},
        attributes={"batch_size": 4, "shard": 0, "shards": 1},
    )
    for start in range(0, 10, 4):
        part = slice(start, min(start + 4, 10))
        writer.write(part, nll[part], coefficients[part])
    writer.close({"logits_sha256": ["x"]})
    return path, coefficients, nll


def test_recordings_open_with_labels(recording):
    path, coefficients, nll = recording
    opened = xr.open_zarr(path, consolidated=False)
    assert {"layer", "channel", "site", "document", "offset", "target"} <= set(opened.coords)
    assert opened["coefficients"].dims == ("input", "token", "coefficient")
    assert np.array_equal(opened["coefficients"].values, coefficients)
    assert np.array_equal(opened["nll"].values, nll)
    assert opened["site"].values.tolist() == ["a", "b", "c"]
    assert opened.attrs["logits_sha256"] == ["x"]
    assert opened["nll"].attrs["units"] == "nats"
    assert open_recording(path)["coefficients"].chunks[0] == (4, 4, 2)


def test_readers_read_any_inputs_in_any_order(recording):
    path, coefficients, _ = recording
    read = reader([path.parent])
    for inputs in ([0, 1, 2], [9, 0, 4, 4], [3], []):
        assert np.array_equal(read(np.array(inputs, dtype=int)), coefficients[inputs])


@pytest.fixture
def shards(tmp_path, rng):
    """Three shards of 4, 4 and 3 inputs, in batches of 4."""
    coefficients = rng.normal(size=(11, 6, 2)).astype(np.float32)
    nll = rng.random((11, 5)).astype(np.float32)
    folders = []
    for shard, (start, stop) in enumerate([(0, 4), (4, 8), (8, 11)]):
        folders.append(tmp_path / str(shard))
        folders[-1].mkdir()
        writer = Writer(
            folders[-1] / "recording.zarr", inputs=stop - start, batch_size=4,
            tokens=np.arange(66).reshape(11, 6)[start:stop], document=np.arange(start, stop),
            offset=np.zeros(stop - start, np.int64), token_axis=6,
            coordinates={"layer": np.arange(2), "channel": np.zeros(2, int), "site": np.array(["a", "b"])},
            attributes={"precision": "float32", "shard": shard, "shards": 3},
        )  # fmt: skip
        writer.write(slice(0, stop - start), nll[start:stop], coefficients[start:stop])
        writer.close({"logits_sha256": [str(shard)]})
    return folders, coefficients, nll


def test_shards_are_read_as_one(shards):
    folders, coefficients, nll = shards
    whole = open_recordings(folders)
    assert np.array_equal(whole["coefficients"].values, coefficients)
    assert np.array_equal(whole["nll"].values, nll)
    assert whole["document"].values.tolist() == list(range(11))
    assert whole["site"].values.tolist() == ["a", "b"]
    assert whole["coefficients"].chunks[0] == (4, 4, 3)
    assert whole.attrs["logits_sha256"] == ["0", "1", "2"]
    read = reader(folders)
    for inputs in ([0, 1, 2], [10, 0, 4, 4], [3, 4], [7, 8, 9], []):
        assert np.array_equal(read(np.array(inputs, dtype=int)), coefficients[inputs])


def test_shards_that_do_not_belong_together_are_refused(shards):
    folders, _, _ = shards
    for wrong in (folders[:2], folders[::-1], [*folders, folders[0]]):
        with pytest.raises(FcaError, match="not all shards of one set, in order: "):
            open_recordings(wrong)
    zarr.open_group(folders[1] / "recording.zarr").attrs["precision"] = "bfloat16"
    with pytest.raises(FcaError, match="the shards of a recording differ in precision"):
        open_recordings(folders)


def test_one_file_per_batch(recording):
    path, _, _ = recording
    assert len([f for f in (path / "coefficients").rglob("*") if f.is_file() and f.name != "zarr.json"]) == 3


def test_bfloat16_is_exact_in_float32():
    import torch

    values = torch.randn(1000).bfloat16()
    assert torch.equal(torch.from_numpy(values.float().numpy()).bfloat16(), values)
