"""In: a corpus and a tokenizer. Out: training tokens, calibration and evaluation inputs.

Writes training.npy [token], calibration.npz and evaluation.npz (tokens, document, offset),
documents.csv (one row per document, with its split) and inputs.json (sizes).
"""

import hashlib
import json
from pathlib import Path

import numpy as np
import pandas as pd

from fca.artifacts.parameters import External
from fca.errors import FcaError
from fca.inputs.corpus import Document, documents
from fca.inputs.tokenizers import tokenizer as load_tokenizer
from fca.inputs.windows import cut, split_documents
from fca.progress import progress


def inputs(
    into: Path,
    *,
    corpus: str,
    source: External,
    field: str,
    tokenizer: External,
    length: int,
    calibration: int,
    evaluation: int,
    split: dict,
    seed: int,
) -> None:
    """Extract disjoint sets of inputs from a corpus.

    Exact duplicates among the documents are dropped first, then documents, not inputs, are
    split, so that no document feeds two sets.
    """
    kept, duplicates = unique(documents(corpus, source, field))
    if not kept:
        raise FcaError(f"inputs.source: {source!r} holds no text")
    order = ("training", "calibration", "evaluation")
    rng = np.random.default_rng(seed)
    splits = split_documents(len(kept), {name: split[name] for name in order}, rng)
    encoder = load_tokenizer(tokenizer)
    encoded = {
        name: {int(d): encoder.encode(kept[d].text) for d in progress(ids, f"tokenise {name}")}
        for name, ids in splits.items()
    }
    counts = {"calibration": calibration, "evaluation": evaluation}
    for name, count in counts.items():
        windows = cut(encoded[name], count, length, rng, name)
        np.savez(into / f"{name}.npz", **vars(windows))
    separator = np.asarray([encoder.separator], dtype=np.int32)
    pieces = [piece for ids in encoded["training"].values() for piece in (ids, separator)]
    stream = np.concatenate(pieces) if pieces else np.zeros(0, np.int32)
    np.save(into / "training.npy", stream.astype(np.uint16 if encoder.vocabulary <= 65536 else np.int32))
    pd.DataFrame(
        [
            {
                "document": int(d),
                "name": kept[d].name,
                "split": name,
                "tokens": len(encoded[name][int(d)]),
                "sha256": hashlib.sha256(kept[d].text.encode()).hexdigest(),
            }
            for name, ids in splits.items()
            for d in ids
        ]
    ).to_csv(into / "documents.csv", index=False)
    facts = {
        "corpus": corpus,
        "vocabulary": encoder.vocabulary,
        "length": length,
        "documents": {name: len(ids) for name, ids in splits.items()},
        "duplicates_dropped": duplicates,
        "training_tokens": len(stream),
        "inputs": counts,
    }
    (into / "inputs.json").write_text(json.dumps(facts, indent=1) + "\n")


def unique(found) -> tuple[list[Document], int]:
    """Documents without exact duplicates and without empty ones, and how many were dropped."""
    kept: dict[bytes, Document] = {}
    seen = 0
    for document in found:
        if document.text.strip():
            seen += 1
            kept.setdefault(hashlib.sha256(document.text.encode()).digest(), document)
    return list(kept.values()), seen - len(kept)
