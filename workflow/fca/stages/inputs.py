"""In: a corpus and a tokenizer. Out: training tokens, calibration and evaluation inputs.

Writes training.npy [token], calibration.npz and evaluation.npz (tokens, document, offset),
documents.csv (one row per document, with its split) and inputs.json (sizes).
"""

import csv
import hashlib
import json
import shutil
from collections.abc import Iterable
from itertools import compress
from pathlib import Path

import numpy as np

from fca.errors import FcaError
from fca.inputs import tokenizers
from fca.inputs.corpus import Document, documents
from fca.inputs.windows import cut, split_documents
from fca.progress import progress
from fca.stages.arguments import Corpus, Tokenizer

BLOCK = 1 << 20  # bytes copied at once


def inputs(
    into: Path,
    *,
    corpus: str,
    source: Corpus,
    field: str,
    tokenizer: Tokenizer,
    length: int,
    calibration: int,
    evaluation: int,
    split: dict,
    seed: int,
) -> None:
    """Extract disjoint sets of inputs from a corpus.

    Exact duplicates among the documents are dropped first, then documents, not inputs, are
    split, so that no document feeds two sets. The corpus is gone through twice, to find duplicates
    and to tokenise, and one document's text is held at a time.
    """
    kept, duplicates = unique(documents(corpus, source, field))
    count = sum(kept)
    if not count:
        raise FcaError(f"inputs.source: {source!r} holds no text")
    order = ("training", "calibration", "evaluation")
    rng = np.random.default_rng(seed)
    splits = split_documents(count, {name: split[name] for name in order}, rng)
    place = {int(d): name for name, ids in splits.items() for d in ids}
    encoder = tokenizers.tokenizer(tokenizer)
    encoded: dict[str, dict[int, np.ndarray]] = {"calibration": {}, "evaluation": {}}
    found = compress(documents(corpus, source, field), kept)
    with (into / "documents.csv").open("w", newline="") as table, Stream(into, encoder) as training:
        rows = csv.writer(table)
        rows.writerow(["document", "name", "split", "tokens", "sha256"])
        for d, document in enumerate(progress(found, "tokenise", count)):
            if (name := place.get(d)) is None:
                continue
            ids = encoder.encode(document.text)
            if name == "training":
                training.add(ids)
            else:
                encoded[name][d] = ids
            rows.writerow([d, document.name, name, len(ids), sha256(document.text).hexdigest()])
    counts = {"calibration": calibration, "evaluation": evaluation}
    for name, wanted in counts.items():
        np.savez(into / f"{name}.npz", **vars(cut(encoded[name], wanted, length, rng, name)))
    facts = {
        "corpus": corpus,
        "vocabulary": encoder.vocabulary,
        "length": length,
        "documents": {name: len(ids) for name, ids in splits.items()},
        "duplicates_dropped": duplicates,
        "training_tokens": training.tokens,
        "inputs": counts,
    }
    (into / "inputs.json").write_text(json.dumps(facts, indent=1) + "\n")


def sha256(text: str):
    return hashlib.sha256(text.encode())


def unique(found: Iterable[Document]) -> tuple[list[bool], int]:
    """Which documents to keep, the first of equal ones and none that is empty; how many were equal."""
    seen: set[bytes] = set()
    kept, filled = [], 0
    for document in found:
        digest = sha256(document.text).digest()
        full = bool(document.text.strip())
        kept.append(full and digest not in seen)
        filled += full
        if full:
            seen.add(digest)
    return kept, filled - len(seen)


class Stream:
    """Writes training.npy [token] document by document, in the smallest type that holds the ids."""

    def __init__(self, into: Path, encoder: tokenizers.Tokenizer):
        self.separator = encoder.separator
        self.type = np.dtype(np.uint16 if encoder.vocabulary <= 65536 else np.int32)
        self.path = into / "training.npy"
        self.raw = into / "training.raw"
        self.tokens = 0

    def __enter__(self) -> "Stream":
        self.file = self.raw.open("wb")
        return self

    def add(self, ids: np.ndarray) -> None:
        """One document, and the separator behind it."""
        self.file.write(np.append(ids, self.separator).astype(self.type).tobytes())
        self.tokens += len(ids) + 1

    def __exit__(self, *exception) -> None:
        """Put the header before it, which holds the number of tokens, known only now."""
        self.file.close()
        facts = {"descr": self.type.str, "fortran_order": False, "shape": (self.tokens,)}
        with self.raw.open("rb") as raw, self.path.open("wb") as whole:
            np.lib.format.write_array_header_1_0(whole, facts)
            shutil.copyfileobj(raw, whole, BLOCK)
        self.raw.unlink()
