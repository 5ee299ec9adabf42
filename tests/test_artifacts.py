"""Keys change when and only when content does; artifacts exist whole or not at all."""

import json
import os
import shutil
import stat
import threading
from pathlib import Path

import numpy as np
import pytest
import xarray as xr
import zarr

from fca.artifacts.clean import remove, unreferenced
from fca.artifacts.code import code_digest, imports, parse
from fca.artifacts.external import Digests, files_below
from fca.artifacts.keys import Recipe, digest
from fca.artifacts.recording import Writer, open_recording, open_recordings, reader
from fca.artifacts.store import Store
from fca.binding import STAGES, declaration, make, memory_of, options, recipe
from fca.errors import FcaError

RECIPE = Recipe("profiles", {"a": 1}, {"calibration": "coefficients/abc"}, {}, "code")


# --------------------------------------------------------------------- keys


@pytest.mark.parametrize(
    "other",
    [
        Recipe("variance", {"a": 1}, {"calibration": "coefficients/abc"}, {}, "code"),
        Recipe("profiles", {"a": 2}, {"calibration": "coefficients/abc"}, {}, "code"),
        Recipe("profiles", {"a": 1}, {"calibration": "coefficients/abd"}, {}, "code"),
        Recipe("profiles", {"a": 1}, {"calibration": "coefficients/abc"}, {"x": "1"}, "code"),
        Recipe("profiles", {"a": 1}, {"calibration": "coefficients/abc"}, {}, "edited"),
    ],
)
def test_each_part_of_a_recipe_counts(other):
    assert other.key != RECIPE.key


def test_order_of_parameters_does_not_count():
    assert digest({"a": 1, "b": [1, 2]}) == digest({"b": [1, 2], "a": 1})
    assert digest({"b": [1, 2]}) != digest({"b": [2, 1]})


def test_comments_docstrings_and_formatting_do_not_count():
    plain = "def f(x):\n    return x + 1\n"
    dressed = (
        '"""Module."""\n\n# why\ndef f(x):\n    """Doc."""\n    return (x\n            + 1)  # because\n'
    )
    assert parse(plain)[0] == parse(dressed)[0]
    assert parse(plain)[0] != parse(plain.replace("1", "2"))[0]


def test_digest_follows_imports_inside_the_package():
    assert "fca.arithmetic.effects" in imports("fca.stages.effects")
    assert "fca.networks.sites" in imports("fca.networks.capture")
    assert code_digest("fca.stages.effects") != code_digest("fca.stages.variance")


def test_runtime_arguments_do_not_count(tmp_path):
    digests = Digests(tmp_path / "memory")
    arguments = {
        "model": "models/a",
        "inputs": "inputs/b",
        "split": "evaluation",
        "batch_size": 2,
        "precision": "float32",
    }
    plain = recipe("coefficients", arguments, digests)
    assert recipe("coefficients", arguments | {"device": "cuda", "threads": 4}, digests).key == plain.key
    assert recipe("coefficients", arguments | {"batch_size": 3}, digests).key != plain.key
    with pytest.raises(FcaError, match=r"missing \['split'\]"):
        recipe("coefficients", {k: v for k, v in arguments.items() if k != "split"}, digests)
    with pytest.raises(FcaError, match=r"unknown \['splits'\]"):
        recipe("coefficients", arguments | {"splits": 1}, digests)


@pytest.mark.parametrize("stage", STAGES)
def test_declarations_match_the_functions(stage):
    """What is read from the source is what Python sees."""
    import inspect
    from importlib import import_module

    signature = inspect.signature(getattr(import_module(f"fca.stages.{stage}"), stage))
    keywords = [p for p in signature.parameters.values() if p.kind == p.KEYWORD_ONLY]
    assert [a.name for a in declaration(stage).arguments] == [p.name for p in keywords]
    for argument, parameter in zip(declaration(stage).arguments, keywords, strict=True):
        if parameter.default is not parameter.empty:
            assert argument.default == parameter.default


def test_options_quote_for_a_shell():
    found = options("inputs", {"corpus": "text", "source": "my texts/*.txt", "split": {"training": 1.0}})
    assert "--source 'my texts/*.txt'" in found
    assert """--split '{"training": 1.0}'""" in found


def test_file_digests_are_remembered_and_noticed(tmp_path):
    file, memory = tmp_path / "corpus.txt", tmp_path / "memory.json"
    file.write_text("one")
    digests = Digests(memory)
    first = digests.of_files(files_below(file))
    digests.save()
    assert Digests(memory).known
    file.write_text("two")
    os.utime(file, ns=(1, 1))
    assert Digests(memory).of_files(files_below(file)) != first
    memory.write_text("{broken")
    file.write_text("one")
    assert Digests(memory).of_files(files_below(file)) == first


def test_what_others_learn_meanwhile_is_kept(tmp_path):
    for name in "ab":
        (tmp_path / name).write_text(name)
    one, two = Digests(tmp_path / "memory"), Digests(tmp_path / "memory")
    digest = one.of_source("a", files_below(tmp_path / "a"))
    two.of_source("b", files_below(tmp_path / "b"))
    one.save()
    two.save()
    known = Digests(tmp_path / "memory")
    assert known.remembered("a") == digest
    assert known.remembered("b")
    assert known.absent == {"a", "b"}
    assert len(known.known) == 2
    assert known.remembered("c") is None


# -------------------------------------------------------------------- store


def fill(folder: Path) -> None:
    (folder / "data.txt").write_text("content")


def test_published_artifacts_verify(tmp_path):
    store = Store(tmp_path)
    artifact = store.publish(RECIPE, fill)
    manifest = artifact.manifest()
    assert manifest["key"] == RECIPE.key == artifact.path.name
    assert manifest["recipe"]["parameters"] == {"a": 1}
    assert {"python", "numpy", "fca"} <= manifest["versions"].keys()
    assert artifact.damage() == []
    (artifact.path / ".snakemake_timestamp").touch()
    assert artifact.damage() == []
    (artifact.path / "data.txt").write_text("changed")
    (artifact.path / "more.txt").write_text("added")
    assert sorted(artifact.damage()) == ["data.txt: changed", "more.txt: not in the manifest"]


def test_a_failed_stage_leaves_nothing(tmp_path):
    def fail(folder: Path) -> None:
        fill(folder)
        raise RuntimeError("half way")

    store = Store(tmp_path)
    with pytest.raises(RuntimeError, match="half way"):
        store.publish(RECIPE, fail)
    assert list((tmp_path / "profiles").iterdir()) == []


def test_an_artifact_is_found_instead_of_made_again(tmp_path):
    store = Store(tmp_path)
    store.publish(RECIPE, fill)
    store.publish(RECIPE, lambda folder: pytest.fail("made again"))


def test_two_runs_at_once_leave_one_whole_artifact(tmp_path):
    store, both = Store(tmp_path), threading.Barrier(2)

    def slow(folder: Path) -> None:
        fill(folder)
        both.wait(timeout=10)  # both are inside before either publishes

    threads = [threading.Thread(target=store.publish, args=(RECIPE, slow)) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [a.damage() for a in store.artifacts()] == [[]]
    assert store.unfinished() == []


def test_an_artifact_that_lost_its_manifest_is_made_anew(tmp_path):
    """Snakemake deletes the manifest, its output, of a job that is cancelled while it finishes."""
    store = Store(tmp_path)
    (store.publish(RECIPE, fill).path / "manifest.json").unlink()
    assert list(store.artifacts()) == []
    assert store.publish(RECIPE, fill).damage() == []
    assert store.unfinished() == []


def test_modes_follow_the_umask(tmp_path):
    before = os.umask(0o002)
    try:
        artifact = Store(tmp_path).publish(RECIPE, fill)
    finally:
        os.umask(before)
    assert stat.S_IMODE(artifact.path.stat().st_mode) == 0o775
    assert stat.S_IMODE((artifact.path / "data.txt").stat().st_mode) == 0o664


def test_find_by_the_beginning_of_a_key(tmp_path):
    store = Store(tmp_path)
    artifact = store.publish(RECIPE, fill)
    assert store.find(RECIPE.key[:6]).path == artifact.path
    with pytest.raises(FcaError, match="names 0 artifacts"):
        store.find("zzz")


def test_gc_keeps_what_an_index_needs_and_its_sources(tmp_path):
    store = Store(tmp_path / "store")
    source = store.publish(Recipe("coefficients", {"n": 1}, {}, {}, ""), fill)
    needed = store.publish(Recipe("profiles", {}, {"calibration": source.name}, {}, ""), fill)
    loose = store.publish(Recipe("profiles", {"other": 1}, {}, {}, ""), fill)
    index = tmp_path / "index.json"
    index.write_text(json.dumps({"models": [{"artifacts": {"profiles": needed.name}}]}))
    doomed = unreferenced(store, [index])
    assert doomed == [loose.path]
    remove(doomed)
    assert {a.name for a in store.artifacts()} == {source.name, needed.name}
    with pytest.raises(FcaError, match="nothing was removed"):
        unreferenced(store, [tmp_path / "missing.json"])
    index.write_text(json.dumps({"models": [{"artifacts": {"profiles": loose.name}}]}))
    with pytest.raises(FcaError, match="1 of the artifacts that it names.*Nothing was removed"):
        unreferenced(store, [index])


# --------------------------------------------------------------- recordings


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


# ------------------------------------------------------- stores of a team, and of another machine


def snapshot(folder: Path) -> dict[str, int]:
    return {str(f.relative_to(folder)): f.stat().st_mtime_ns for f in folder.rglob("*")}


def test_what_a_store_below_holds_is_found_and_never_written(tmp_path):
    group, mine = tmp_path / "group", tmp_path / "mine"
    there = Recipe("stage", {"a": 1})
    Store(group).publish(there, fill)
    before = snapshot(group)
    store = Store(mine, group)
    assert store.publish(there, lambda _: pytest.fail("made again")).path == group / "stage" / there.key
    assert store.has("stage", there.key)
    own = store.publish(Recipe("stage", {"a": 2}), fill)
    assert own.path.is_relative_to(mine)
    assert [a.path for a in store.artifacts()] == [own.path]  # what `gc` may remove
    assert snapshot(group) == before
    index = tmp_path / "index.json"
    index.write_text(json.dumps({"models": [{"a": [f"stage/{there.key}", own.name]}]}))
    assert unreferenced(store, [index]) == []
    with pytest.raises(FcaError, match="1 of the artifacts that it names"):
        unreferenced(Store(mine), [index])


def test_a_copied_store_is_used_where_its_checkpoint_is_not(tmp_path, monkeypatch):
    """The cluster's folder is gone; what was made from the checkpoint is found, nothing else is made."""
    from conftest import ARCHITECTURE, build

    from fca.networks.checkpoint import load_checkpoint, save_checkpoint

    cluster, laptop = tmp_path / "cluster", tmp_path / "laptop"
    (cluster / "checkpoints/model").mkdir(parents=True)
    laptop.mkdir()
    save_checkpoint(cluster / "checkpoints/model", "featuregate", ARCHITECTURE, build("featuregate"))
    (cluster / "corpus.txt").write_text("text\n" * 9)
    imported = {
        "kind": "featuregate",
        "source": "checkpoints/model",
        "sites": {"family": "auto"},
        "options": {},
    }
    inputs = {
        "corpus": "text", "source": "*.txt", "field": "text", "tokenizer": "bytes", "length": 8, "calibration": 1,
        "evaluation": 1, "split": {"training": 0.4, "calibration": 0.3, "evaluation": 0.3}, "seed": 0,
    }  # fmt: skip
    monkeypatch.chdir(cluster)
    made = make("imports", imported, Store("store"), None)
    planned = recipe("inputs", inputs, memory_of(Store("store")))
    with pytest.raises(FcaError, match="split"):  # one document is too few, but its digest is known now
        make("inputs", inputs, Store("store"), None)
    assert load_checkpoint(made.path)[1]
    shutil.copytree(cluster / "store", laptop / "store")
    shutil.copytree(cluster / "store", laptop / "group")
    (cluster / "checkpoints").rename(tmp_path / "elsewhere")
    monkeypatch.chdir(laptop)
    for store in (Store("store"), Store("mine", "group")):
        assert make("imports", imported, store, made.path.name).name == made.name
        assert recipe("inputs", inputs, memory_of(store)).key == planned.key
        for stage, arguments, absent in (
            ("imports", imported | {"options": {"gguf_file": "x"}}, "checkpoints/model"),
            ("inputs", inputs, r"\*.txt"),
        ):
            with pytest.raises(FcaError, match=f"{absent} is not on this machine"):
                make(stage, arguments, store, None)
        with pytest.raises(FcaError, match="'checkpoints/model' is not on this machine; what was recorded"):
            load_checkpoint(store.path(*made.name.split("/")))
    # the same weights at the config's name are found, others under that name are refused
    shutil.copytree(tmp_path / "elsewhere", laptop / "checkpoints")
    assert load_checkpoint(Store("store").path(*made.name.split("/")))[1]
    weights = laptop / "checkpoints/model/model.safetensors"
    content = bytearray(weights.read_bytes())
    content[-1] ^= 1
    weights.write_bytes(bytes(content))
    with pytest.raises(FcaError, match="'checkpoints/model' has changed since it was imported"):
        load_checkpoint(Store("store").path(*made.name.split("/")))
    with pytest.raises(FcaError, match="no folder 'checkpoints/other'"):
        make("imports", imported | {"source": "checkpoints/other"}, Store("store"), None)
