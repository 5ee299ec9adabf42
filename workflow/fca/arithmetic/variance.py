"""In: chunks of coefficients [input, token, coefficient]. Out: an exact decomposition of variance.

The array is balanced, so the sums of squares of all effects add up to the total. The coefficient
axis splits into layers and, nested in them, channels; crossed with inputs and tokens that makes
up to eleven terms, or seven where every layer has one channel.
"""

from collections.abc import Iterable

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from fca.errors import FcaError

CROSSINGS = (frozenset[str](), frozenset({"input"}), frozenset({"token"}), frozenset({"input", "token"}))
DEPTHS = ("", "layer", "channel")  # how much of the coefficient axis is told apart


class Decomposition:
    """One pass over the inputs in float64; memory grows with tokens x coefficients only.

    Each `add` takes whole inputs. A squared norm is kept for every marginal mean table; those
    that hold the input axis are summed as the inputs pass, the others from running sums.
    """

    def __init__(self, layers: NDArray):
        self.layers, self.member = np.unique(np.asarray(layers), return_inverse=True)
        self.sizes = np.bincount(self.member)  # channels per layer
        self.inputs = 0
        self.shift: float | None = None
        self.sum = np.zeros((0, 0))  # [token, coefficient]
        self.norms = {(depth, "input" in c, "token" in c): 0.0 for depth in DEPTHS for c in CROSSINGS}

    def add(self, chunk: NDArray) -> None:
        """chunk [input, token, coefficient], any float dtype."""
        values = np.asarray(chunk, dtype=np.float64)
        if self.shift is None:
            # Squares of values far from 0 would lose the digits that the variance is made of.
            self.shift = float(values.mean())
            self.sum = np.zeros(values.shape[1:])
        values = values - self.shift
        self.inputs += len(values)
        self.sum += values.sum(axis=0)
        for rows, per_token in ((values, True), (values.mean(axis=1, keepdims=True), False)):
            for depth, norm in self._norms(rows).items():
                scale = 1 if per_token else self.sum.shape[0]
                self.norms[depth, True, per_token] += scale * norm

    def _norms(self, values: NDArray) -> dict[str, float]:
        """Squared norms over the coefficient axis at each depth, summed over all other axes."""
        by_layer = self._layer_means(values)
        return {
            "channel": float(np.square(values).sum()),
            "layer": float((np.square(by_layer) * self.sizes).sum()),
            "": float(np.square(values.mean(axis=-1)).sum() * values.shape[-1]),
        }

    def _layer_means(self, values: NDArray) -> NDArray:
        order = np.argsort(self.member, kind="stable")
        starts = np.concatenate([[0], np.cumsum(self.sizes)[:-1]])
        return np.add.reduceat(values[..., order], starts, axis=-1) / self.sizes

    def table(self) -> pd.DataFrame:
        """Columns term, sum_of_squares, degrees_of_freedom, share (eta squared, 0 to 1).

        Terms are named by their factors, `layer:token` for an interaction; `channel` means
        channel within layer. Shares of a constant array are all 0. Raises FcaError when empty.
        """
        if not self.inputs:
            raise FcaError("no inputs to decompose")
        tokens, coefficients = self.sum.shape
        mean = self.sum / self.inputs
        norms = dict(self.norms)
        for depth, norm in self._norms(mean).items():
            norms[depth, False, True] = self.inputs * norm
        for depth, norm in self._norms(mean.mean(axis=0)).items():
            norms[depth, False, False] = self.inputs * tokens * norm
        total = norms["channel", True, True] - norms["", False, False]
        rounding = mean.size * self.inputs * (4 * np.finfo(float).eps * abs(self.shift or 0.0)) ** 2
        if total <= rounding:
            total = 0.0  # a constant array: what is left is the rounding of its mean
        freedom_of_depth = {
            "": 1,
            "layer": len(self.layers) - 1,
            "channel": coefficients - len(self.layers),
        }
        rows = []
        for depth, below in (("", None), ("layer", ""), ("channel", "layer")):
            for crossing in CROSSINGS:
                freedom = freedom_of_depth[depth]
                freedom *= self.inputs - 1 if "input" in crossing else 1
                freedom *= tokens - 1 if "token" in crossing else 1
                if (not depth and not crossing) or (depth == "channel" and freedom_of_depth[depth] == 0):
                    continue  # the grand mean; no channels within layers
                squares = self._effect(norms, depth, below, crossing)
                # Rounding can leave a vanishing effect slightly below 0.
                squares = max(squares, 0.0)
                term = ":".join([*([depth] if depth else []), *sorted(crossing)])
                share = squares / total if total > 0 else 0.0
                rows.append((term, squares, freedom, share))
        return pd.DataFrame(rows, columns=["term", "sum_of_squares", "degrees_of_freedom", "share"])

    @staticmethod
    def _effect(norms: dict, depth: str, below: str | None, crossing: frozenset[str]) -> float:
        """Inclusion and exclusion over the factors: the norm of what the coarser tables lack."""
        squares = 0.0
        for lower in CROSSINGS:
            if lower <= crossing:
                sign = (-1) ** len(crossing - lower)
                key = ("input" in lower, "token" in lower)
                squares += sign * norms[depth, *key]
                if below is not None:
                    squares -= sign * norms[below, *key]
        return squares

    @property
    def total(self) -> float:
        """Total sum of squares about the grand mean."""
        grand = self.sum.mean() / self.inputs
        return self.norms["channel", True, True] - grand**2 * self.inputs * self.sum.size

    @property
    def mean(self) -> float:
        """Grand mean of the coefficients."""
        return float(self.sum.mean() / self.inputs + (self.shift or 0.0))


def decompose(chunks: Iterable[NDArray], layers: NDArray) -> Decomposition:
    """Decompose coefficients given in chunks of whole inputs; layers [coefficient]."""
    decomposition = Decomposition(layers)
    for chunk in chunks:
        decomposition.add(chunk)
    return decomposition
