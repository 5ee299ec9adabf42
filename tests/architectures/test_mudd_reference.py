"""Our MUDD against numbers of the official implementation, through the public API, per token."""

import shutil
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

import fca

DATA = Path(__file__).parents[1] / "data"
TOLERANCE = 1e-4
STREAMS = ("query", "key", "value", "residual")


@pytest.fixture(params=["tiny_muddpythia", "tiny_muddformer"])
def reference(request):
    folder = DATA / request.param
    model, sites = fca.load_checkpoint(folder)
    expected = dict(np.load(folder / "expected.npz"))
    return model, sites, expected, fca.capture(model, sites, expected["input_ids"])


def close(found, expected):
    assert found.shape == expected.shape
    assert np.abs(np.asarray(found) - expected).max() < TOLERANCE


def test_logits_and_losses(reference):
    model, _, expected, record = reference
    with torch.inference_mode():
        close(model(torch.as_tensor(expected["input_ids"]).long()).numpy(), expected["logits"])
    close(record["nll"].values, expected["nll"])


def test_coefficients_carry_layer_stream_and_source(reference):
    _, _, expected, record = reference
    for layer in range(4):
        theirs = expected[f"coefficients_{layer}"]  # stream, input, token, source
        for s in range(theirs.shape[0]):
            stream = STREAMS[s] if theirs.shape[0] == 4 else "residual"
            for source in range(theirs.shape[3]):
                chosen = (
                    (record["layer"] == layer) & (record["stream"] == stream) & (record["source"] == source)
                )
                close(record["coefficients"].values[:, :, chosen.values][..., 0], theirs[s, :, :, source])


def test_five_replays(reference):
    model, sites, expected, record = reference
    values = record["coefficients"].values
    by_token = np.take_along_axis(values, expected["permutation"][:, :, None], axis=1)
    layers = record["layer"].values
    layer_mean = np.stack([values[..., layers == layer].mean() for layer in layers])
    replays = {
        "nll_correct": values,
        "nll_cross_input": values[expected["derangement"]],
        "nll_token_shuffle": by_token,
        "nll_coefficient_mean": np.broadcast_to(values.mean(axis=(0, 1)), values.shape),
        "nll_layer_mean": np.broadcast_to(layer_mean, values.shape),
    }
    for name, coefficients in replays.items():
        close(
            fca.replay(
                model,
                sites,
                expected["input_ids"],
                record["coefficients"].copy(data=coefficients).assign_attrs(record.attrs),
            )["nll"].values,
            expected[name],
        )


def test_bfloat16_runs(reference, request):
    folder = DATA / request.node.callspec.params["reference"]
    model, sites = fca.load_checkpoint(folder, precision="bfloat16")
    record = fca.capture(model, sites, reference[2]["input_ids"])
    assert np.abs(record["nll"].values - reference[2]["nll"]).max() < 0.5
    replayed = fca.replay(model, sites, reference[2]["input_ids"], fca.correct(record))
    assert replayed.attrs["logits_sha256"] == record.attrs["logits_sha256"]


@pytest.fixture
def copy(tmp_path):
    return Path(shutil.copytree(DATA / "tiny_muddpythia", tmp_path / "checkpoint"))


def test_sharded_and_bin_checkpoints(copy):
    weights = load_file(copy / "model.safetensors")
    names = sorted(weights)
    (copy / "model.safetensors").unlink()
    torch.save(weights, copy / "pytorch_model.bin")
    from_bin, _ = fca.load_checkpoint(copy)
    (copy / "pytorch_model.bin").unlink()
    shards = {"a.safetensors": names[::2], "b.safetensors": names[1::2]}
    for file, some in shards.items():
        save_file({n: weights[n].contiguous() for n in some}, copy / file)
    index = {n: file for file, some in shards.items() for n in some}
    (copy / "model.safetensors.index.json").write_text(__import__("json").dumps({"weight_map": index}))
    sharded, _ = fca.load_checkpoint(copy)
    for (name, one), other in zip(from_bin.state_dict().items(), sharded.state_dict().values(), strict=True):
        assert torch.equal(one, other), name
    (copy / "b.safetensors").unlink()
    with pytest.raises(fca.FcaError, match="index names b.safetensors"):
        fca.load_checkpoint(copy)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda w: w.pop("norm.weight"), "misses parameters norm.weight"),
        (lambda w: w.update(surplus=torch.zeros(1)), "has unknown parameters surplus"),
        (lambda w: w.update({"norm.weight": torch.zeros(3)}), "has wrong shapes for parameters norm.weight"),
    ],
)
def test_wrong_checkpoints_are_refused(copy, change, message):
    weights = load_file(copy / "model.safetensors")
    change(weights)
    save_file(weights, copy / "model.safetensors")
    with pytest.raises(fca.FcaError, match=message):
        fca.load_checkpoint(copy)


def test_missing_files_are_named(copy, tmp_path):
    (copy / "model.safetensors").write_bytes(b"not weights")
    with pytest.raises(fca.FcaError, match=r"model.safetensors: cannot be read"):
        fca.load_checkpoint(copy)
    (copy / "model.safetensors").unlink()
    with pytest.raises(fca.FcaError, match="neither model.safetensors"):
        fca.load_checkpoint(copy)
    with pytest.raises(fca.FcaError, match="no config.json"):
        fca.load_checkpoint(tmp_path)


def test_code_in_a_pickle_is_never_run(copy, tmp_path):
    class Evil:
        def __reduce__(self):
            return (Path.touch, (tmp_path / "ran",))

    (copy / "model.safetensors").unlink()
    torch.save({"x": Evil()}, copy / "pytorch_model.bin")
    with pytest.raises(fca.FcaError, match="cannot be read as weights"):
        fca.load_checkpoint(copy)
    assert not (tmp_path / "ran").exists()
