"""In: values in any order. Out: a fingerprint that depends on the multiset only.

Two arrays hold the same values equally often, in whatever order, if and (up to a chance of
about 2^-64 per coefficient) only if their fingerprints agree. Fingerprints of batches add up, so
an array larger than memory needs no sort.
"""

from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from fca.errors import ProofError


def fingerprint(values: NDArray[np.float32]) -> NDArray[np.uint64]:
    """Sum modulo 2^64 of a mixed hash of every value's bits, per coefficient (the last axis)."""
    # bits, not numbers: hashed as numbers, 0 and -0 would be one
    bits = np.ascontiguousarray(values, dtype=np.float32).view(np.uint32)
    hashes = pd.util.hash_array(bits.ravel(), categorize=False)
    return hashes.reshape(-1, values.shape[-1]).sum(axis=0, dtype=np.uint64)


@dataclass(frozen=True)
class Multisets:
    """Fingerprints [coefficient] of what a reassignment should hold and of what it holds.

    Donors can lie in other shards, so a shard's own need not agree; the sums over all must.
    """

    expected: NDArray[np.uint64]
    found: NDArray[np.uint64]

    def __add__(self, other: "Multisets") -> "Multisets":
        return Multisets(self.expected + other.expected, self.found + other.found)

    def check(self, intervention: str) -> None:
        """Raise ProofError for the first coefficient whose values changed."""
        wrong = np.flatnonzero(self.expected != self.found)
        if len(wrong):
            raise ProofError(f"multisets: {intervention} changed the values of coefficient {wrong[0]}")
