"""The stages in order on a tiny model, their proofs, and a small audit recomputed from the stores."""

import json
import shutil

import numpy as np
import pandas as pd
import pytest
import torch
import xarray as xr
import zarr
from tiny import INTERVENTIONS, SIZES, TRAINING, write_corpus

from fca.errors import FcaError, ProofError
from fca.planning.make import make
from fca.store.artifacts import Store


@pytest.fixture(scope="module")
def audit(tmp_path_factory):
    """A whole audit of one featuregate and one dense model, by stage."""
    root = tmp_path_factory.mktemp("audit")
    write_corpus(root)
    store = Store(root / "store")
    done = {}

    def run(name, stage, **arguments):
        done[name] = make(stage, arguments, store, None)
        return done[name].name

    inputs = run(
        "inputs", "inputs", corpus="text", source=str(root / "*.txt"), field="text", tokenizer="bytes", length=24,
        calibration=8, evaluation=10, split={"training": 0.5, "calibration": 0.25, "evaluation": 0.25}, seed=0,
    )  # fmt: skip
    dense = run("dense", "models", inputs=inputs, kind="dense", architecture=SIZES, seed=0, **TRAINING)
    model = run("model", "models", inputs=inputs, kind="featuregate", architecture=SIZES, seed=0, **TRAINING)
    passes = {"model": model, "inputs": inputs, "batch_size": 4, "precision": "float32"}
    calibration = run("calibration", "coefficients", split="calibration", **passes)
    evaluation = run("evaluation", "coefficients", split="evaluation", **passes)
    profiles = run("profiles", "profiles", calibration=[calibration])
    replays = [
        run(
            f"replay {i}",
            "replay",
            model=model,
            evaluation=[evaluation],
            profiles=profiles,
            intervention=i,
            repeats=2,
            seed=0,
            compared=4,
        )
        for i in INTERVENTIONS
    ]
    maps = [
        run(
            f"layers {i}", "layers", model=model, evaluation=[evaluation], profiles=profiles, intervention=i,
            order="alone", repeats=2, seed=0,
        )
        for i in ("cross_input", "layer_mean", "layer_only_mean")
    ]  # fmt: skip
    run(
        "variance",
        "variance",
        evaluation=[evaluation],
        profiles=profiles,
        resamples=200,
        confidence=0.95,
        seed=0,
    )
    run(
        "effects", "effects", calibration=[calibration], evaluation=[evaluation], replays=replays, maps=maps, resamples=200,
        confidence=0.95, seed=0,
    )  # fmt: skip
    run(
        "execution", "execution", model=model, evaluation=[evaluation], profiles=profiles, dense=dense, batch_size=4, rounds=3, seed=0,
    )  # fmt: skip
    return store, done


def open_(audit, name, file):
    return xr.open_zarr(audit[1][name].path / file, consolidated=False)


def test_everything_verifies(audit):
    store, done = audit
    assert len(list(store.artifacts())) == len(done)
    assert all(artifact.damage() == [] for artifact in store.artifacts())
    assert store.unfinished() == []


def test_effects_recomputed_from_the_stores(audit):
    """Penalty and retention from the raw losses, in a few lines that share no code."""
    table = pd.read_csv(audit[1]["effects"].path / "tables/effects.csv", na_values="undefined").set_index(
        "intervention"
    )
    nll = {
        i: float(open_(audit, f"replay {i}", "replay.zarr")["nll"].mean(dtype=float)) for i in INTERVENTIONS
    }
    assert nll["correct"] == float(open_(audit, "evaluation", "recording.zarr")["nll"].mean(dtype=float))
    for name, loss in nll.items():
        assert table.loc[name, "nll"] == pytest.approx(loss, abs=1e-9)
        assert table.loc[name, "penalty"] == pytest.approx(loss - nll["correct"], abs=1e-9)
        if not np.isnan(table.loc[name, "retention"]):
            gap = nll["global_mean"] - nll["correct"]
            assert table.loc[name, "retention"] == pytest.approx((nll["global_mean"] - loss) / gap, abs=1e-6)


def test_layer_maps_recomputed_from_the_stores(audit):
    """One layer at a time, through the public API: a replay with that layer's coefficients replaced."""
    import fca

    model, sites = fca.load_checkpoint(audit[1]["model"].path)
    recording = fca.open_recording(audit[1]["evaluation"].path / "recording.zarr").load()
    record = fca.capture(model, sites, recording["tokens"].values, batch_size=4)
    mean = open_(audit, "profiles", "profiles.zarr")["mean"].values.mean(axis=0)
    table = pd.read_csv(audit[1]["effects"].path / "tables/layers.csv").set_index(["intervention", "layer"])
    assert set(table.index.get_level_values(0)) == {"cross_input", "layer_mean"}  # one channel a layer
    for layer in range(3):
        values = record["coefficients"].copy()
        values[..., layer] = mean[layer]
        values.attrs = dict(record.attrs)
        loss = fca.replay(model, sites, recording["tokens"].values, values)["nll"].mean(dtype=float)
        expected = float(loss - recording["nll"].mean(dtype=float))
        assert table.loc[("layer_mean", layer), "penalty"] == pytest.approx(expected, abs=1e-9)


def test_divergences_are_averaged_over_inputs_and_repeats(audit):
    table = pd.read_csv(audit[1]["effects"].path / "tables/divergence.csv").set_index("intervention")
    stored = open_(audit, "replay cross_input", "replay.zarr")
    assert stored["kl"].shape == (2, 4)
    assert table.loc["cross_input", "kl"] == pytest.approx(float(stored["kl"].mean()))
    assert table.loc["correct", ["inputs", "kl", "total_variation", "top1_agreement"]].tolist() == [
        4,
        0,
        0,
        1,
    ]


def test_views_and_factors_recomputed_from_the_stores(audit):
    folder = audit[1]["effects"].path
    nll = {
        i: open_(audit, f"replay {i}", "replay.zarr")["nll"].values.mean(axis=0, dtype=float)
        for i in INTERVENTIONS
    }
    more = nll["cross_input"] - nll["correct"]
    positions = pd.read_csv(folder / "tables/positions.csv").set_index(["intervention", "from"])
    assert positions.loc[("cross_input", 4), "penalty"] == pytest.approx(more[:, 3:7].mean(), abs=1e-9)
    counts = np.bincount(
        open_(audit, "calibration", "recording.zarr")["tokens"].values.ravel(), minlength=300
    )
    seen = counts[open_(audit, "evaluation", "recording.zarr")["tokens"].values[:, 1:]]
    frequencies = pd.read_csv(folder / "tables/frequencies.csv").set_index(["intervention", "from"])
    rare = (seen >= 10) & (seen < 100)
    assert frequencies.loc[("cross_input", 10), "penalty"] == pytest.approx(more[rare].mean(), abs=1e-9)
    factors = pd.read_csv(folder / "tables/factors.csv").set_index(["what", "term"])
    both = nll["cross_input+token_shuffle"].mean() - nll["correct"].mean()
    alone = [nll[i].mean() - nll["correct"].mean() for i in ("cross_input", "token_shuffle")]
    assert factors.loc[("interaction", "input:token"), "effect"] == pytest.approx(both - sum(alone), abs=1e-9)


def test_variance_recomputed_from_the_stores(audit):
    values = open_(audit, "evaluation", "recording.zarr")["coefficients"].astype("float64")
    table = pd.read_csv(audit[1]["variance"].path / "tables/variance.csv").set_index("term")
    centred = values - values.mean()
    by_layer = centred.mean(["input", "token"])
    total = float((centred**2).sum())
    per_layer = values.sizes["input"] * values.sizes["token"]
    assert table.loc["layer", "share"] == pytest.approx(float((by_layer**2).sum()) * per_layer / total)
    assert table["sum_of_squares"].sum() == pytest.approx(total)


def test_profiles_come_from_calibration_only(audit):
    expected = (
        open_(audit, "calibration", "recording.zarr")["coefficients"].values.astype(np.float64).mean(axis=0)
    )
    assert np.allclose(open_(audit, "profiles", "profiles.zarr")["mean"].values, expected)


def test_profiles_replay_what_they_say(audit):
    """layer_mean through the stage equals a forward pass with constants written into the gates."""
    from fca import load_checkpoint

    model, _ = load_checkpoint(audit[1]["model"].path)
    mean = open_(audit, "profiles", "profiles.zarr")["mean"].values.mean(axis=0)
    for block, value in zip(model.blocks, mean, strict=True):
        torch.nn.init.zeros_(block.gate.out.weight)
        torch.nn.init.constant_(
            block.gate.out.bias, float(np.log(value / (2 - value)))
        )  # 2 sigmoid(b) = value
    tokens = torch.from_numpy(open_(audit, "evaluation", "recording.zarr")["tokens"].values.astype(np.int64))
    with torch.inference_mode():
        logits = model(tokens)
    losses = torch.nn.functional.cross_entropy
    nll = losses(logits[:, :-1].flatten(0, 1), tokens[:, 1:].flatten(), reduction="none")
    expected = nll.view(len(tokens), -1).numpy()
    replayed = open_(audit, "replay layer_mean", "replay.zarr")["nll"].values[0]
    live = open_(audit, "evaluation", "recording.zarr")["nll"].values
    wrong = np.abs(replayed - expected).max()
    assert wrong < 1e-5
    assert np.abs(replayed - live).max() > 20 * wrong  # the live coefficients would not pass


def test_execution_counts(audit):
    table = pd.read_csv(audit[1]["execution"].path / "tables/execution.csv").set_index("mode")
    assert (table["blocks_executed_per_token"] == 3).all()
    assert table.loc["dense", "ratio_to_dense"] == 1
    weights = 3 * (4 + 8) * 16 * 16 + 256 * 16  # attention, feed-forward; output layer
    attention = 3 * 2 * 24 * 16  # scores and values, over all 24 positions
    assert table.loc["dense", "flops_per_token"] == 2 * (weights + attention)
    assert (
        table.loc["live", "flops_per_token"]
        > table.loc["frozen", "flops_per_token"]
        == table.loc["dense", "flops_per_token"]
    )
    assert (
        table.loc["static", "parameters"]
        == table.loc["dense", "parameters"]
        < table.loc["live", "parameters"]
    )
    assert (table["peak_bytes"] >= 4 * 24 * 256 * 4).all()  # at least the logits


def test_proofs_are_collected(audit):
    proofs = json.loads((audit[1]["effects"].path / "proofs.json").read_text())
    assert proofs["identity"] is proofs["multisets_kept"] is proofs["disjoint"] is True
    assert proofs["controller_runs"] == 0
    assert proofs["undefined"] == {}


def tampered(audit, name, change, tmp_path):
    """A copy of an artifact with something changed inside."""
    copy = shutil.copytree(audit[1][name].path, tmp_path / "copy")
    change(zarr.open_group(copy / "recording.zarr"))
    return copy


def test_a_recording_that_is_not_the_models_own_fails_the_identity_proof(audit, tmp_path):
    from fca.stages.replay import replay

    def nudge(group):
        group["coefficients"][0, 0, 0] = np.nextafter(group["coefficients"][0, 0, 0], np.float32(9))

    copy = tampered(audit, "evaluation", nudge, tmp_path)
    with pytest.raises(ProofError, match="identity: .* differs from the live run in 1 of 3 batches"):
        replay(
            tmp_path, model=audit[1]["model"].path, evaluation=(copy,), profiles=audit[1]["profiles"].path,
            intervention="correct", repeats=1, seed=0,
        )  # fmt: skip


def test_a_shared_document_fails_the_disjointness_proof(audit, tmp_path):
    from fca.stages.effects import effects

    document = int(open_(audit, "evaluation", "recording.zarr")["document"][0])

    def share(group):
        group["document"][0] = document

    copy = tampered(audit, "calibration", share, tmp_path)
    with pytest.raises(ProofError, match=f"disjoint: 1 documents .* document {document}"):
        effects(
            tmp_path, calibration=(copy,), evaluation=(audit[1]["evaluation"].path,), replays=(), resamples=100,
            confidence=0.9, seed=0,
        )  # fmt: skip


def test_a_broken_reassignment_fails_the_multiset_proof(audit, monkeypatch, tmp_path):
    import fca.frozen.model as frozen
    import fca.stages.replay as stage
    from fca.interventions.assignments import Assignment

    def repeats_an_input(name, labels, seed):
        return Assignment(donors=np.zeros(len(labels.documents), dtype=int))

    monkeypatch.setattr(frozen, "draw", repeats_an_input)
    with pytest.raises(ProofError, match="multisets: cross_input changed the values of coefficient"):
        stage.replay(
            tmp_path, model=audit[1]["model"].path, evaluation=(audit[1]["evaluation"].path,),
            profiles=audit[1]["profiles"].path, intervention="cross_input", repeats=1, seed=0,
        )  # fmt: skip


def test_a_shuffle_that_uses_a_layer_twice_fails_the_multiset_proof(audit, monkeypatch):
    import fca.frozen.model as stage
    from fca.interventions.assignments import Assignment

    monkeypatch.setattr(stage, "draw", lambda *_: Assignment(coefficients=np.array([1, 1, 2])))
    frozen = stage.FrozenModel.open(audit[1]["model"].path, [audit[1]["evaluation"].path], "cpu")
    with pytest.raises(ProofError, match="uses a coefficient twice and leaves one out"):
        frozen.reassigned("layer_shuffle", 0)


def test_planned_keys_are_checked(audit):
    store, done = audit
    others = {"profiles": done["profiles"].name, "resamples": 200, "confidence": 0.95, "seed": 0}
    with pytest.raises(FcaError, match="was planned as 123"):
        make("variance", others | {"evaluation": [done["evaluation"].name]}, store, "123")
    with pytest.raises(FcaError, match="no artifact 'coefficients/none'"):
        make("variance", others | {"evaluation": ["coefficients/none"]}, store, None)
