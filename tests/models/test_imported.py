"""An imported model is what it was, wherever the store is taken."""

import shutil

import pytest
from tiny import ARCHITECTURE, build

from fca.errors import FcaError
from fca.models.checkpoint import load_checkpoint
from fca.models.weights import save_checkpoint
from fca.planning.make import make
from fca.planning.recipe import digests_of, recipe
from fca.store.artifacts import Store


def test_a_copied_store_is_used_where_its_checkpoint_is_not(tmp_path, monkeypatch):
    """The cluster's folder is gone; what was made from the checkpoint is found, nothing else is made."""
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
    planned = recipe("inputs", inputs, digests_of(Store("store")))
    with pytest.raises(FcaError, match="split"):  # one document is too few, but its digest is known now
        make("inputs", inputs, Store("store"), None)
    assert load_checkpoint(made.path)[1]
    shutil.copytree(cluster / "store", laptop / "store")
    shutil.copytree(cluster / "store", laptop / "group")
    (cluster / "checkpoints").rename(tmp_path / "elsewhere")
    monkeypatch.chdir(laptop)
    for store in (Store("store"), Store("mine", "group")):
        assert make("imports", imported, store, made.path.name).name == made.name
        assert recipe("inputs", inputs, digests_of(store)).key == planned.key
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
