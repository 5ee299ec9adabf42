"""Files outside the store are hashed once, and a change is noticed."""

import os
import sys

import pytest

from fca.errors import FcaError
from fca.store.external import Digests, files_below, module_file


def test_file_digests_are_remembered_and_noticed(tmp_path):
    file, memory = tmp_path / "corpus.txt", tmp_path / "memory.json"
    file.write_text("one")
    digests = Digests(memory)
    first = digests.of_files(files_below(file))
    digests.save()
    assert Digests(memory).files
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
    assert known.known("a") == digest
    assert known.known("b")
    assert known.absent == {"a", "b"}
    assert len(known.files) == 2
    assert known.known("c") is None


def test_a_factory_is_found_without_importing_what_it_lies_in(tmp_path, monkeypatch):
    """Planning must not import torch, nor run what a package does when it is imported."""
    package = tmp_path / "mine"
    package.mkdir()
    (package / "__init__.py").write_text("raise RuntimeError('imported')\n")
    (package / "model.py").write_text("import torch\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    assert module_file("mine.model:make") == ("mine.model", package / "model.py")
    for missing in ("mine.other:make", "nothing:make", "nothing.at.all:make"):
        with pytest.raises(FcaError, match=f"no module '{missing.split(':')[0]}'"):
            module_file(missing)
    # what lies in the folder cannot take the place of a library
    (tmp_path / "json.py").write_text("")
    assert module_file("json:loads")[1] != tmp_path / "json.py"
