"""Batches that fit, and models that do not: the same numbers, wherever the weights are."""

import numpy as np
import pytest
import torch
from public_models import build as build_family
from tiny import build

from fca.architectures import featuregate
from fca.controllers.families import known_sites
from fca.frozen.passes import record, recording_bytes, replay
from fca.machine.batch_size import FOR_TENSORS, fitting, free_bytes
from fca.machine.counting import peak_bytes
from fca.machine.device import device_of, place, size_of


def test_what_fits_is_measured(tokens):
    model = build("featuregate")
    sites = featuregate.sites(model)

    def bytes_of(n):
        return recording_bytes(model, sites, tokens[:n])

    one, two = bytes_of(1), bytes_of(2)
    assert two > one > 16 * 50 * 4  # at least the logits of one input
    for inputs, expected in ((1, 1), (2, 2), (3, 2), (4, 4), (31, 16), (32, 32), (500, 32)):
        free = (one + (inputs - 1) * (two - one)) / FOR_TENSORS
        assert fitting(bytes_of, len(tokens), free + 1) == expected
    assert fitting(bytes_of, len(tokens), free=10) == 1
    assert fitting(bytes_of, 1, free=1e12) == 32


def test_a_larger_batch_takes_what_was_said(tokens):
    """Ten inputs by the line through one and two."""
    model = build("mudd")
    one, two, ten = (recording_bytes(model, [], tokens[:n]) for n in (1, 2, 10))
    assert ten == pytest.approx(one + 9 * (two - one), rel=0.05)
    ids = torch.from_numpy(tokens)
    with torch.inference_mode():
        assert ten >= peak_bytes(lambda: model(ids))


def test_a_slurm_jobs_memory_is_the_limit(monkeypatch):
    free = free_bytes(torch.device("cpu"))
    assert free > 1e8
    monkeypatch.setenv("SLURM_MEM_PER_NODE", "2000")
    assert free_bytes(torch.device("cpu")) < 2000 * 2**20


@pytest.mark.filterwarnings("ignore")  # the library's own deprecations
@pytest.mark.parametrize("family", ["mixtral", "qwen3_next"])
def test_a_model_that_is_spread_gives_the_same_bits(family):
    """Half of the weights are on the disk and brought in for each pass, as they would be beside a GPU."""
    model = build_family(family)
    ids = np.random.default_rng(0).integers(3, 90, size=(4, 12))
    for sites in known_sites(model).values():
        live = next(iter(record(model, sites, ids, 4)))
        other = np.roll(live.coefficients, 1, axis=0)
        expected = next(iter(replay(model, sites, live.forms, ids, lambda i, o=other: o[i], 4)))
        spread = place(build_family(family), "cpu", {"cpu": size_of(model) // 2, "disk": 2**40})
        assert "disk" in spread.hf_device_map.values()
        assert any(p.device.type == "meta" for p in spread.parameters())
        assert device_of(spread) == torch.device("cpu")
        again = next(iter(record(spread, sites, ids, 4)))
        assert again.logits_sha256 == live.logits_sha256
        assert np.array_equal(again.coefficients, live.coefficients)
        for values, wanted in ((live.coefficients, live), (other, expected)):
            found = next(iter(replay(spread, sites, live.forms, ids, lambda i, v=values: v[i], 4)))
            assert found.logits_sha256 == wanted.logits_sha256
            assert found.controller_runs == 0


def test_what_is_kept_on_the_disk_goes_with_the_model(tmp_path, monkeypatch):
    import gc
    import tempfile

    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    model = build("featuregate")
    spread = place(model, "cpu", {"cpu": size_of(model) // 2, "disk": 10**9})
    assert list(tmp_path.glob("fca-offload-*"))
    del model, spread
    gc.collect()
    assert not list(tmp_path.glob("fca-offload-*"))


def test_a_model_that_fits_is_just_moved():
    model = build("featuregate")
    assert place(model, "cpu") is model
    assert not hasattr(model, "hf_device_map")
