"""In: token ids of each document. Out: windows of equal length, each within one document."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fca.errors import FcaError


@dataclass(frozen=True)
class Windows:
    """tokens [input, token]; document [input]: its id; offset [input]: where it starts, tokens."""

    tokens: NDArray[np.int32]
    document: NDArray[np.int64]
    offset: NDArray[np.int64]


def split_documents(
    documents: int, shares: dict[str, float], rng: np.random.Generator
) -> dict[str, NDArray[np.int64]]:
    """Document ids per split, disjoint, in random order; shares must add up to at most 1."""
    if sum(shares.values()) > 1 + 1e-9 or min(shares.values()) < 0:
        raise FcaError(f"inputs.split: shares must be at least 0 and add up to at most 1: {shares}")
    order = rng.permutation(documents)
    ends = np.rint(np.cumsum([0.0, *shares.values()]) * documents).astype(int)
    return {name: order[a:b] for name, a, b in zip(shares, ends[:-1], ends[1:])}


def cut(
    encoded: dict[int, NDArray[np.int32]],
    count: int,
    length: int,
    rng: np.random.Generator,
    name: str,
) -> Windows:
    """`count` windows that do not overlap, from as many documents as possible.

    ASSUME: every document gives one window before any gives a second, since the inputs of one
    document are not independent; a document's windows tile it from a random start, in random
    order. Raises FcaError where the documents hold too few.
    """
    rounds: list[list[tuple[int, int]]] = []
    for document, ids in encoded.items():
        if len(ids) < length:
            continue
        start = int(rng.integers(0, min(length, len(ids) - length + 1)))
        offsets = start + length * np.arange((len(ids) - start) // length)
        for turn, offset in enumerate(rng.permutation(offsets)):
            if turn == len(rounds):
                rounds.append([])
            rounds[turn].append((document, int(offset)))
    available = sum(map(len, rounds))
    if available < count:
        raise FcaError(
            f"inputs.{name}: {count} inputs of {length} tokens asked for, but its "
            f"{len(encoded)} documents hold {available}; ask for fewer or shorter ones, or raise "
            f"inputs.split.{name}"
        )
    chosen: list[tuple[int, int]] = []
    for places in rounds:
        wanted = min(count - len(chosen), len(places))
        chosen += [places[i] for i in rng.permutation(len(places))[:wanted]]
    tokens = [encoded[document][offset : offset + length] for document, offset in chosen]
    document, offset = np.asarray(chosen, dtype=np.int64).T
    return Windows(np.stack(tokens).astype(np.int32), document, offset)
