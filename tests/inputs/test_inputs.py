"""Corpora, tokenizers and windows; splits share nothing; what is too little is refused."""

import gzip
import hashlib
import json
import tracemalloc

import numpy as np
import pandas as pd
import pytest

from fca.errors import FcaError
from fca.inputs.corpus import documents, files
from fca.inputs.windows import cut, split_documents
from fca.planning.recipe import recipe
from fca.stages.inputs import inputs
from fca.store.external import Digests

ARGUMENTS = {
    "corpus": "text",
    "source": "",
    "field": "text",
    "tokenizer": "bytes",
    "length": 8,
    "calibration": 6,
    "evaluation": 6,
    "split": {"training": 0.5, "calibration": 0.25, "evaluation": 0.25},
    "seed": 0,
}


@pytest.fixture
def corpus(tmp_path, rng):
    for i in range(24):
        letters = rng.integers(97, 123, size=40).astype(np.uint8)
        (tmp_path / f"{i:02}.txt").write_bytes(letters.tobytes())
    (tmp_path / "copy.txt").write_bytes((tmp_path / "03.txt").read_bytes())
    (tmp_path / "empty.txt").write_text(" \n")
    return ARGUMENTS | {"source": str(tmp_path / "*.txt")}


def test_splits_share_no_document_and_windows_are_their_text(corpus, tmp_path):
    into = tmp_path / "out"
    into.mkdir()
    inputs(into, **corpus)
    table = pd.read_csv(into / "documents.csv").set_index("document")
    assert table.index.is_unique
    assert table["sha256"].is_unique
    facts = json.loads((into / "inputs.json").read_text())
    assert facts["duplicates_dropped"] == 1
    for split in ("calibration", "evaluation"):
        windows = np.load(into / f"{split}.npz")
        assert windows["tokens"].shape == (6, 8)
        assert (table.loc[windows["document"], "split"] == split).all()
        for ids, document, offset in zip(
            windows["tokens"], windows["document"], windows["offset"], strict=True
        ):
            text = (tmp_path / table.loc[document, "name"]).read_bytes()
            assert bytes(ids.tolist()) == text[offset : offset + 8]
    training = np.load(into / "training.npy")
    assert (training == 0).sum() == facts["documents"]["training"] == 12


def test_every_document_gives_one_window_before_any_gives_two(rng):
    encoded = {d: np.arange(100, dtype=np.int32) for d in range(5)}
    windows = cut(encoded, 7, 10, rng, "evaluation")
    assert np.bincount(windows.document).tolist().count(2) == 2
    assert np.unique(windows.document[:5]).size == 5
    for d in range(5):
        offsets = np.sort(windows.offset[windows.document == d])
        assert (np.diff(offsets) >= 10).all()


def test_too_little_text_is_refused_with_what_there_is(rng):
    encoded = {0: np.arange(25, dtype=np.int32), 1: np.arange(5, dtype=np.int32)}
    with pytest.raises(FcaError, match=r"inputs.evaluation: 9 inputs of 10 tokens asked for, .* hold [12];"):
        cut(encoded, 9, 10, rng, "evaluation")


def test_shares_over_one_are_refused(rng):
    with pytest.raises(FcaError, match="add up to at most 1"):
        split_documents(10, {"a": 0.7, "b": 0.4}, rng)


@pytest.mark.parametrize("ending", ["jsonl", "jsonl.gz", "jsonl.zst"])
def test_jsonl(tmp_path, ending):
    path = tmp_path / f"c.{ending}"
    data = "\n".join(json.dumps({"body": text}) for text in ("one", "zwei ü")) + "\n\n"
    if ending.endswith("gz"):
        path.write_bytes(gzip.compress(data.encode()))
    elif ending.endswith("zst"):
        import zstandard

        path.write_bytes(zstandard.compress(data.encode()))
    else:
        path.write_text(data)
    assert [d.text for d in documents("jsonl", str(path), "body")] == ["one", "zwei ü"]
    with pytest.raises(FcaError, match="no text in field 'text'; it has body"):
        list(documents("jsonl", str(path), "text"))


def test_broken_jsonl_names_file_and_line(tmp_path):
    (tmp_path / "c.jsonl").write_text('{"text": "a"}\n{"text": \n')
    with pytest.raises(FcaError, match=r"c.jsonl:2: not JSON"):
        list(documents("jsonl", str(tmp_path / "c.jsonl")))


def test_a_glob_that_matches_nothing_is_refused():
    with pytest.raises(FcaError, match="no file matches 'nowhere/"):
        files("nowhere/*.txt", "text")


def test_hugging_face_data_set_and_tokenizer(tmp_path):
    import datasets

    datasets.Dataset.from_dict({"text": ["one", "two"]}).to_parquet(tmp_path / "set" / "train.parquet")
    assert [d.text for d in documents("huggingface", str(tmp_path / "set"))] == ["one", "two"]
    with pytest.raises(FcaError, match="no column 'body'; it has text"):
        list(documents("huggingface", str(tmp_path / "set"), "body"))


def test_hugging_face_tokenizer(tmp_path):
    import tokenizers
    from transformers import PreTrainedTokenizerFast

    from fca.inputs.tokenizers import tokenizer

    words = {"<end>": 0, "<unk>": 1, "a": 2, "b": 3}
    inner = tokenizers.Tokenizer(tokenizers.models.WordLevel(words, unk_token="<unk>"))
    inner.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    PreTrainedTokenizerFast(tokenizer_object=inner, eos_token="<end>", unk_token="<unk>").save_pretrained(
        tmp_path
    )
    found = tokenizer(str(tmp_path))
    assert found.encode("a b c").tolist() == [2, 3, 1]
    assert (found.vocabulary, found.separator) == (4, 0)
    with pytest.raises(FcaError, match="cannot load"):
        tokenizer(str(tmp_path / "missing"))


def test_a_changed_byte_changes_the_key_and_a_moved_folder_does_not(corpus, tmp_path):
    digests = Digests(tmp_path / "memory")
    key = recipe("inputs", corpus, digests).key
    assert recipe("inputs", corpus, digests).key == key
    moved = tmp_path / "moved"
    moved.mkdir()
    for file in tmp_path.glob("*.txt"):
        (moved / file.name).write_bytes(file.read_bytes())
    assert recipe("inputs", corpus | {"source": str(moved / "*.txt")}, digests).key == key
    text = bytearray((moved / "05.txt").read_bytes())
    text[3] ^= 1
    (moved / "05.txt").write_bytes(bytes(text))
    assert recipe("inputs", corpus | {"source": str(moved / "*.txt")}, digests).key != key


def test_the_default_corpus_is_found_and_ordered():
    found = files("stdlib", "stdlib")
    names = [name for name, _ in found]
    assert len(names) > 400
    assert names == sorted(names)
    assert not any(name.startswith(("test/", "site-packages/")) for name in names)


def test_one_document_is_held_at_a_time(tmp_path):
    """A corpus of 20 MB is gone through in a fraction of that; the training part is on the disk."""
    rng = np.random.default_rng(0)
    for i in range(100):
        (tmp_path / f"{i:03}.txt").write_bytes(rng.integers(97, 123, 200_000, dtype=np.uint8).tobytes())
    into = tmp_path / "into"
    into.mkdir()
    arguments = ARGUMENTS | {"source": str(tmp_path / "*.txt"), "length": 1000}
    arguments |= {"split": {"training": 0.94, "calibration": 0.03, "evaluation": 0.03}}
    tracemalloc.start()
    inputs(into, **arguments)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 12e6  # 6 documents that inputs are cut from, as int32, and one of text
    training = np.load(into / "training.npy", mmap_mode="r")
    assert training.shape == (94 * 200_001,)
    table = pd.read_csv(into / "documents.csv")
    first = table[table.split == "training"].iloc[0]
    text = (tmp_path / first["name"]).read_bytes()
    assert training[:200_000].astype(np.uint8).tobytes() == text
    assert training[200_000] == 0
    assert first["sha256"] == hashlib.sha256(text).hexdigest()
    assert not (into / "training.raw").exists()


@pytest.mark.parametrize("corpus", ["lines", "jsonl"])
def test_bytes_that_are_no_text_are_named(corpus, tmp_path):
    file = tmp_path / "broken.txt"
    file.write_bytes(b'{"text": "good"}\n{"text": "\xff\xfe"}\n')
    with pytest.raises(FcaError, match=r"broken.txt: not UTF-8 text after line \d"):
        list(documents(corpus, str(file)))
