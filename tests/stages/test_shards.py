"""Results do not depend on how many jobs a set was split into."""

import json
import shutil

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from tiny import INTERVENTIONS, SIZES, TRAINING, write_corpus

from fca.errors import FcaError, ProofError
from fca.planning.make import make
from fca.store.artifacts import Store

pytestmark = pytest.mark.slow

MAPPED = ("cross_input", "layer_only_mean")  # random; undefined for one channel per layer


@pytest.fixture(scope="module")
def audits(tmp_path_factory):
    """One audit of one model with 1, 2 and 3 shards: shards -> name -> artifact."""
    root = tmp_path_factory.mktemp("shards")
    write_corpus(root)
    store = Store(root / "store")
    found = {}
    for shards in (1, 2, 3):
        done = found[shards] = {}

        def run(name, stage, done=done, **arguments):
            done[name] = make(stage, arguments, store, None)
            return done[name].name

        inputs = run(
            "inputs", "inputs", corpus="text", source=str(root / "*.txt"), field="text", tokenizer="bytes", length=24,
            calibration=9, evaluation=11, split={"training": 0.5, "calibration": 0.25, "evaluation": 0.25}, seed=0,
        )  # fmt: skip
        model = run(
            "model", "models", inputs=inputs, kind="featuregate", architecture=SIZES, seed=0, **TRAINING
        )

        def record(split, model=model, inputs=inputs, shards=shards, run=run):
            return [
                run(
                    f"{split} {shard}", "coefficients", model=model, inputs=inputs, split=split, batch_size=3,
                    precision="float32", shard=shard, shards=shards,
                )
                for shard in range(shards)
            ]  # fmt: skip

        calibration, evaluation = record("calibration"), record("evaluation")
        profiles = run("profiles", "profiles", calibration=calibration)
        frozen = {"model": model, "evaluation": evaluation, "profiles": profiles, "repeats": 2, "seed": 0}
        replays = [
            run(f"replay {i} {s}", "replay", intervention=i, compared=5, shard=s, **frozen)
            for i in INTERVENTIONS
            for s in range(shards)
        ]
        maps = [
            run(f"layers {i} {order} {s}", "layers", intervention=i, order=order, shard=s, **frozen)
            for i in MAPPED
            for order in ("alone", "from_bottom")
            for s in range(shards)
        ]
        shares = {"resamples": 200, "confidence": 0.95, "seed": 0}
        run("variance", "variance", evaluation=evaluation, profiles=profiles, **shares)
        run(
            "effects", "effects", calibration=calibration, evaluation=evaluation, replays=replays[::-1], maps=maps,
            **shares,
        )  # fmt: skip
        one = {"model": model, "evaluation": evaluation, "profiles": profiles, "dense": None}
        run("execution", "execution", batch_size=7, rounds=2, seed=0, **one)
    return found


@pytest.mark.parametrize("shards", [2, 3])
def test_results_do_not_depend_on_the_number_of_shards(audits, shards):
    one, many = audits[1], audits[shards]
    for name in ("variance", "effects"):
        for file in one[name].path.rglob("*.csv"):
            other = many[name].path / file.relative_to(one[name].path)
            assert file.read_text() == other.read_text(), file.name
    assert json.loads((one["effects"].path / "proofs.json").read_text()) == json.loads(
        (many["effects"].path / "proofs.json").read_text()
    )
    counted = "flops_per_token", "blocks_executed_per_token"
    executed = [
        pd.read_csv(found["execution"].path / "tables/execution.csv")[[*counted]] for found in (one, many)
    ]
    pd.testing.assert_frame_equal(*executed)


def test_donors_come_from_other_shards(audits):
    """The draw is of the whole set: every shard takes some of its coefficients from another."""
    for shard in range(3):
        folder = audits[3][f"replay cross_input {shard}"].path
        held = np.load(folder / "multisets.npz")
        assert (held["expected"] != held["found"]).any()
        assert json.loads((folder / "proofs.json").read_text())["multisets_kept"] is None
        within = np.load(audits[3][f"replay token_shuffle {shard}"].path / "multisets.npz")
        assert (within["expected"] == within["found"]).all()


def test_shards_hold_whole_batches_and_only_their_own_losses(audits):
    lengths = []
    for shard in range(3):
        recording = xr.open_zarr(audits[3][f"evaluation {shard}"].path / "recording.zarr", consolidated=False)
        replay = xr.open_zarr(audits[3][f"replay correct {shard}"].path / "replay.zarr", consolidated=False)
        assert np.array_equal(replay["nll"].values[0], recording["nll"].values)
        lengths.append((recording.sizes["input"], replay.sizes["compared"]))
    assert lengths == [(6, 5), (3, 0), (2, 0)]


def arguments(found, leave_out=()):
    """What the effects stage takes, as folders."""

    def of(start):
        return tuple(a.path for name, a in found.items() if name.startswith(start) and name not in leave_out)

    return {
        "calibration": of("calibration"), "evaluation": of("evaluation"), "replays": of("replay"),
        "resamples": 100, "confidence": 0.9, "seed": 0,
    }  # fmt: skip


def test_a_missing_shard_is_named(audits, tmp_path):
    from fca.stages.effects import effects

    with pytest.raises(FcaError, match="token_shuffle: 2 of 3 shards were given"):
        effects(tmp_path, **arguments(audits[3], leave_out=["replay token_shuffle 1"]))


def test_a_shard_without_its_multisets_is_noticed(audits, tmp_path):
    from fca.stages.effects import effects

    folder = shutil.copytree(audits[3]["replay cross_input 1"].path, tmp_path / "copy")
    (folder / "multisets.npz").unlink()
    given = arguments(audits[3], leave_out=["replay cross_input 1"])
    given["replays"] = (*given["replays"], folder)
    with pytest.raises(FcaError, match="cross_input: multisets.npz is missing in one of 3 shards"):
        effects(tmp_path, **given)


def test_shards_that_together_changed_a_multiset_fail_the_proof(audits, tmp_path):
    from fca.stages.effects import effects

    folder = shutil.copytree(audits[3]["replay cross_input 1"].path, tmp_path / "copy")
    held = dict(np.load(folder / "multisets.npz"))
    held["found"][1, 2] += np.uint64(1)
    np.savez(folder / "multisets.npz", **held)
    given = arguments(audits[3], leave_out=["replay cross_input 1"])
    given["replays"] = (*given["replays"], folder)
    with pytest.raises(ProofError, match="multisets: cross_input changed the values of coefficient 2"):
        effects(tmp_path, **given)


def test_a_batch_that_memory_decides_is_named_and_replayed(audits, tmp_path, monkeypatch):
    """Shards agree on their borders even where one has less memory than the other."""
    import fca.machine.batch_size as memory
    from fca.stages.coefficients import coefficients
    from fca.stages.replay import replay

    monkeypatch.setattr("fca.stages.coefficients.LARGEST", 8)
    model, inputs = audits[1]["model"].path, audits[1]["inputs"].path
    folders = [tmp_path / "0", tmp_path / "1"]
    for shard, (folder, free) in enumerate(zip(folders, (1e12, 10), strict=True)):
        folder.mkdir()
        monkeypatch.setattr("fca.stages.coefficients.free_bytes", lambda _, free=free: free)
        monkeypatch.setattr(memory, "LARGEST", 8)
        coefficients(
            folder, model=model, inputs=inputs, split="evaluation", batch_size=0, precision="float32",
            shard=shard, shards=2,
        )  # fmt: skip
    opened = [xr.open_zarr(folder / "recording.zarr", consolidated=False) for folder in folders]
    assert [(one.attrs["batch_size"], one.sizes["input"]) for one in opened] == [(8, 8), (1, 3)]
    for shard in range(2):
        into = tmp_path / f"replay {shard}"
        into.mkdir()
        replay(
            into, model=model, evaluation=folders, profiles=audits[1]["profiles"].path, intervention="correct",
            repeats=1, seed=0, shard=shard,
        )  # fmt: skip
        assert json.loads((into / "proofs.json").read_text())["identity"] is True


def test_more_shards_than_batches_are_refused(audits, tmp_path):
    from fca.stages.coefficients import coefficients

    with pytest.raises(FcaError, match="passes.shards is 5, but the evaluation set has only 4 batches of 3"):
        coefficients(
            tmp_path, model=audits[1]["model"].path, inputs=audits[1]["inputs"].path, split="evaluation", batch_size=3,
            precision="float32", shard=0, shards=5,
        )  # fmt: skip
