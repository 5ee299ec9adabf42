"""In: two numbers per document. Out: their ratio over all documents, with an interval and a p value.

Every quantity of an audit is a ratio of two sums over documents: a penalty is the sum of loss
differences over the number of inputs, a retention the loss kept over the loss at stake. The unit
is the document (inputs cut from one document are not independent), never the token.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import stats

Array = NDArray[np.float64]
# ASSUME: below this many documents a bootstrap-t draws too few distinct samples to estimate tails
# (with n = 7 there are 1716, many without spread); Student's t with n - 1 degrees is used there.
FEW = 8


@dataclass(frozen=True)
class Estimate:
    """A value with its interval; None means undefined and is never shown as a number."""

    value: float | None
    low: float | None = None
    high: float | None = None

    @property
    def above_zero(self) -> bool:
        """Whether the interval is known and lies above 0."""
        return self.low is not None and self.low > 0


UNDEFINED = Estimate(None)


@dataclass(frozen=True)
class Linear:
    """A ratio with its linearised standard error; residuals [document] are what it is made of."""

    value: float
    error: float
    residuals: Array


def linear(numerator: Array, denominator: Array) -> Linear | None:
    """sum(numerator) / sum(denominator), arrays [document]; None where the denominator sums to 0.

    The standard error is that of the linearised ratio (Cochran 1977, section 2.11), with n / (n - 1)
    for small n; it is NaN with fewer than two documents.
    """
    total = float(denominator.sum())
    if total == 0 or not np.isfinite(total):
        return None
    value = float(numerator.sum()) / total
    residuals = numerator - value * denominator
    n = len(residuals)
    error = float(np.sqrt(n / (n - 1) * np.square(residuals).sum())) / abs(total) if n > 1 else float("nan")
    # What rounding leaves of equal documents is no spread.
    scale = float(np.abs(numerator).max(initial=0.0) + abs(value) * np.abs(denominator).max(initial=0.0))
    if n > 1 and float(np.abs(residuals).max()) <= 1e-12 * scale:
        error, residuals = 0.0, np.zeros(n)
    return Linear(value, error, residuals)


@dataclass(frozen=True)
class Bootstrap:
    """How intervals are made: resamples, confidence in (0, 1), seed."""

    resamples: int = 2000
    confidence: float = 0.95
    seed: int = 0

    def ratio(self, numerator: ArrayLike, denominator: ArrayLike) -> Estimate:
        """sum(numerator) / sum(denominator), paired over documents, arrays [document].

        Undefined where the denominator sums to 0; without an interval for fewer than two
        documents; the value itself where all documents agree.

        ASSUME: studentised bootstrap (bootstrap-t, Efron and Tibshirani 1993, chapter 12) with
        the linearised error, equal tails. In the tests' simulations (24 to 60 documents, symmetric
        and skewed losses) it covers 93 to 97 % at nominal 95 %. With much heavier tails (normal
        noise of exponential scale) every interval tried falls short: with 24 to 64 documents
        BCa covered 88 to 92 %, percentile 93 to 95 %, this one 91 to 92 %.
        """
        a, b = (np.asarray(x, dtype=np.float64) for x in (numerator, denominator))
        found = linear(a, b)
        if found is None:
            return UNDEFINED
        n = len(a)
        if n < 2:
            return Estimate(found.value)
        if found.error == 0:
            return Estimate(found.value, found.value, found.value)
        tail = (1 - self.confidence) / 2
        if n < FEW:
            upper = float(stats.t.ppf(1 - tail, n - 1))
            lower = -upper
        else:
            pivots = self._pivots(found.residuals, b)
            lower, upper = (float(v) for v in np.quantile(pivots, [tail, 1 - tail]))
        return Estimate(found.value, found.value - upper * found.error, found.value - lower * found.error)

    def _pivots(self, residuals: Array, denominator: Array) -> Array:
        """(resampled ratio - ratio) / its own error, of every resample that has a spread."""
        n = len(residuals)
        counts = resampled(n, self.resamples, self.seed)
        total = counts @ denominator
        with np.errstate(divide="ignore", invalid="ignore"):
            shift = (counts @ residuals) / total
            # squared residuals about the resample's own ratio, expanded so that nothing cancels
            square = (
                counts @ np.square(residuals)
                - 2 * shift * (counts @ (residuals * denominator))
                + np.square(shift) * (counts @ np.square(denominator))
            )
            error = np.sqrt(n / (n - 1) * np.maximum(square, 0.0)) / np.abs(total)
            pivots = shift / error
        return pivots[np.isfinite(pivots)]


@lru_cache(maxsize=4)
def resampled(n: int, resamples: int, seed: int) -> Array:
    """How often each of n documents is drawn, [resample, n]; kept, since all estimates share it."""
    drawn = np.random.default_rng(seed).multinomial(n, np.full(n, 1 / n), size=resamples)
    return drawn.astype(np.float64)


def p_value(numerator: ArrayLike, denominator: ArrayLike) -> float | None:
    """Two-sided p of the ratio being 0: t test over documents on the linearised error.

    None (undefined) with fewer than two documents; 1 where all are exactly 0.
    """
    a, b = (np.asarray(x, dtype=np.float64) for x in (numerator, denominator))
    found = linear(a, b)
    if found is None or len(a) < 2:
        return None
    if found.error == 0:
        return 1.0 if found.value == 0 else 0.0
    return float(2 * stats.t.sf(abs(found.value / found.error), len(a) - 1))


def holm(values: Sequence[float | None]) -> list[float | None]:
    """Holm's (1979) step-down adjusted p values; undefined ones stay so and do not count."""
    known = sorted((p, i) for i, p in enumerate(values) if p is not None)
    adjusted: list[float | None] = [None] * len(values)
    largest = 0.0
    for rank, (p, i) in enumerate(known):
        largest = max(largest, min(1.0, (len(known) - rank) * p))
        adjusted[i] = largest
    return adjusted


def by_document(values: ArrayLike, documents: NDArray) -> Array:
    """Sums of values [input] over each document's inputs, [document]."""
    group = np.unique(documents, return_inverse=True)[1]
    return np.bincount(group, weights=np.asarray(values, dtype=np.float64)).astype(np.float64)


def within(estimate: Estimate) -> Estimate:
    """An estimate cut to 0 .. 1, where shares, correlations and distances of distributions lie."""
    return Estimate(*(v if v is None else min(max(v, 0.0), 1.0) for v in vars(estimate).values()))


def cells(quantities: Mapping[str, Estimate]) -> dict[str, float | str]:
    """Estimates as a table's cells: x, x_low, x_high.

    Undefined values are the word "undefined", so that no reader takes them for a number.
    """
    return {
        quantity + suffix: "undefined" if value is None else value
        for quantity, e in quantities.items()
        for suffix, value in (("", e.value), ("_low", e.low), ("_high", e.high))
    }
