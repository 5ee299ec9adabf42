"""Artifacts exist whole or not at all; others' stores are read and never written."""

import json
import os
import stat
import threading
from pathlib import Path

import pytest

from fca.errors import FcaError
from fca.store.artifacts import Store
from fca.store.clean import remove, unreferenced
from fca.store.keys import Recipe

RECIPE = Recipe("profiles", {"a": 1}, {"calibration": "coefficients/abc"}, {}, "code")


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
    assert unreferenced(store, [index]) == []  # just made: a run that goes on may be about to name it
    doomed = unreferenced(store, [index], spare=0)
    assert doomed == [loose.path]
    remove(doomed)
    assert {a.name for a in store.artifacts()} == {source.name, needed.name}
    with pytest.raises(FcaError, match="nothing was removed"):
        unreferenced(store, [tmp_path / "missing.json"])
    index.write_text(json.dumps({"models": [{"artifacts": {"profiles": loose.name}}]}))
    with pytest.raises(FcaError, match="1 of the artifacts that it names.*Nothing was removed"):
        unreferenced(store, [index])


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
