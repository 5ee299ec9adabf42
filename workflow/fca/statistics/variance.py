"""In: chunks of coefficients [input, token, coefficient]. Out: an exact decomposition of variance.

The array is balanced, so the sums of squares of all effects add up to the total. The coefficient
axis splits into layers and, nested in them, channels; crossed with inputs and tokens that makes
up to eleven terms, or seven where every layer has one channel.

ASSUME: coefficients are pooled in their own units, as they enter the network; where channels have
unlike scales (mixing weights of several streams), the large ones dominate the shares.
"""

from collections.abc import Iterable, Mapping
from typing import Any

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

    def contributions(self, chunk: NDArray) -> dict[tuple[str, bool, bool], NDArray[np.float64]]:
        """What each input adds to the norms, [input] each; call when all inputs have been added.

        They sum to the norms exactly. A norm of the mean over inputs is no sum over inputs; its
        contributions are its linearisation, 2 <input, mean> - <mean, mean> (the infinitesimal
        jackknife), so that the spread of the contributions gives the norm's sampling error.
        """
        values = np.asarray(chunk, dtype=np.float64) - (self.shift or 0.0)
        mean = self.sum / self.inputs
        found = {}
        for per_token in (True, False):
            v, m, scale = values, mean, 1
            if not per_token:
                v, m, scale = v.mean(axis=1, keepdims=True), m.mean(axis=0, keepdims=True), len(mean)
            for depth in DEPTHS:
                a, b, weights = self._level(v, depth), self._level(m, depth), self._weights(depth)
                own, cross = (scale * (a * other * weights).sum(axis=(1, 2)) for other in (a, b))
                norm = scale * float((b * b * weights).sum())
                found[depth, True, per_token] = own
                found[depth, False, per_token] = 2 * cross - norm
        return found

    def _level(self, values: NDArray, depth: str) -> NDArray:
        """Means over what a depth does not tell apart on the last axis."""
        if depth == "channel":
            return values
        return self._layer_means(values) if depth else values.mean(axis=-1, keepdims=True)

    def _weights(self, depth: str) -> NDArray | int:
        """Coefficients behind each of a depth's means."""
        return {"channel": 1, "layer": self.sizes, "": self.sizes.sum()}[depth]

    def _norms(self, values: NDArray) -> dict[str, float]:
        """Squared norms over the coefficient axis at each depth, summed over all other axes."""
        return {
            depth: float((np.square(self._level(values, depth)) * self._weights(depth)).sum())
            for depth in DEPTHS
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
        tokens = len(self.sum)
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
        rows = []
        for term, depth, below, crossing, freedom in self.terms():
            # Rounding can leave a vanishing effect slightly below 0.
            squares = max(float(effect(norms, depth, below, crossing)), 0.0)
            rows.append((term, squares, freedom, squares / total if total > 0 else 0.0))
        return pd.DataFrame(rows, columns=["term", "sum_of_squares", "degrees_of_freedom", "share"])

    def terms(self) -> list[tuple[str, str, str | None, frozenset[str], int]]:
        """Every term: name, depth, the depth it is nested in, crossed factors, degrees of freedom."""
        tokens, coefficients = self.sum.shape
        freedom_of_depth = {"": 1, "layer": len(self.layers) - 1, "channel": coefficients - len(self.layers)}
        found = []
        for depth, below in (("", None), ("layer", ""), ("channel", "layer")):
            for crossing in CROSSINGS:
                if (not depth and not crossing) or (depth == "channel" and freedom_of_depth[depth] == 0):
                    continue  # the grand mean; no channels within layers
                freedom = freedom_of_depth[depth]
                freedom *= self.inputs - 1 if "input" in crossing else 1
                freedom *= tokens - 1 if "token" in crossing else 1
                term = ":".join([*([depth] if depth else []), *sorted(crossing)])
                found.append((term, depth, below, crossing, freedom))
        return found

    @property
    def total(self) -> float:
        """Total sum of squares about the grand mean."""
        grand = self.sum.mean() / self.inputs
        return self.norms["channel", True, True] - grand**2 * self.inputs * self.sum.size

    @property
    def mean(self) -> float:
        """Grand mean of the coefficients."""
        return float(self.sum.mean() / self.inputs + (self.shift or 0.0))


def effect(norms: Mapping, depth: str, below: str | None, crossing: frozenset[str]) -> Any:
    """A term's sum of squares by inclusion and exclusion: the norm of what the coarser tables lack.

    Linear in the norms, so given their contributions [input] it returns the term's.
    """
    squares: Any = 0.0
    for lower in CROSSINGS:
        if lower <= crossing:
            sign = (-1) ** len(crossing - lower)
            key = ("input" in lower, "token" in lower)
            squares = squares + sign * norms[depth, *key]
            if below is not None:
                squares = squares - sign * norms[below, *key]
    return squares


def decompose(chunks: Iterable[NDArray], layers: NDArray) -> Decomposition:
    """Decompose coefficients given in chunks of whole inputs; layers [coefficient]."""
    decomposition = Decomposition(layers)
    for chunk in chunks:
        decomposition.add(chunk)
    return decomposition
