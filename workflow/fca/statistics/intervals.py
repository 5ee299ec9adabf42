"""In: two numbers per document. Out: their ratio over all documents, with an interval and a p value.

Every quantity of an audit is a ratio of two sums over documents: a penalty is the sum of loss
differences over the number of inputs, a retention the loss kept over the loss at stake. The unit
is the document (inputs cut from one document are not independent), never the token.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import stats

Array = NDArray[np.float64]
# ASSUME: no interval is given where fewer than DOCUMENTS hold what is estimated, or fewer than
# EFFECTIVE of them carry its spread: what such a sample has not seen decides. Where all agree to the
# last bit, AGREEING of them are needed to believe it: if one in ten differed, 60 would agree in 0.2 % of
# samples. docs/coverage.md has how often intervals hold the truth with these numbers.
DOCUMENTS, EFFECTIVE, AGREEING = 12, 6, 60
TOO_FEW = "too few documents"
# ASSUME: a resample's standard error, and what it divides by, count as at least this part of the
# sample's own: a resample that misses the few documents with spread has hardly any, and its pivot
# would be arbitrarily large.
FLOOR = 0.3


@dataclass(frozen=True)
class Estimate:
    """A value with its interval; None means undefined and is never shown as a number.

    p: two-sided, of the value being 0; below 1 - confidence exactly where the interval excludes 0.
    note: why there is no interval.
    """

    value: float | None
    low: float | None = None
    high: float | None = None
    p: float | None = field(default=None, compare=False)
    note: str = field(default="", compare=False)

    @property
    def above_zero(self) -> bool:
        """Whether the interval is known and lies above 0."""
        return self.low is not None and self.low > 0


UNDEFINED = Estimate(None)
# a loss compared with itself, and the whole as a share of itself: known without any data
NOTHING, ALL = Estimate(0.0, 0.0, 0.0, p=1.0), Estimate(1.0, 1.0, 1.0, p=0.0)


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

        Undefined where the denominator sums to 0; without an interval for too few documents; the value
        itself where enough of them agree.

        The interval is the wider one, on each side, of two: a studentised bootstrap (bootstrap-t, Efron
        and Tibshirani 1993, chapter 12) with the linearised error, and Student's t on that error; p is the
        larger of theirs. ASSUME: the first follows skewed losses and is too narrow for heavy tails, the
        second the other way round, and which of them is at hand is not known. The interval never leaves
        the range of the documents' own ratios and 0.
        """
        a, b = (np.asarray(x, dtype=np.float64) for x in (numerator, denominator))
        found = linear(a, b)
        if found is None:
            return UNDEFINED
        holding = np.count_nonzero(b)
        if found.error == 0 and holding >= AGREEING:
            return Estimate(found.value, found.value, found.value, p=1.0 if found.value == 0 else 0.0)
        if holding < DOCUMENTS or found.error == 0 or carrying(found.residuals) < EFFECTIVE:
            return Estimate(found.value, note=TOO_FEW)
        tail = (1 - self.confidence) / 2
        pivots = self._pivots(found.residuals, b)
        lower, upper = (float(v) for v in np.quantile(pivots, [tail, 1 - tail]))
        t = float(stats.t.ppf(1 - tail, len(a) - 1))
        low = found.value - max(upper, t) * found.error
        high = found.value - min(lower, -t) * found.error
        if (b >= 0).all():
            ratios = a[b > 0] / b[b > 0]
            low, high = max(low, min(float(ratios.min()), 0.0)), min(high, max(float(ratios.max()), 0.0))
        return Estimate(found.value, low, high, p=self._p(found.value / found.error, pivots, len(a)))

    def _p(self, pivot: float, pivots: Array, documents: int) -> float:
        """The larger of bootstrap's and t's p; that of the bootstrap inverts the quantiles of `ratio`."""
        below = float(np.interp(pivot, np.sort(pivots), np.linspace(0, 1, len(pivots))))
        bootstrap = max(2 * min(below, 1 - below), min(2 / (len(pivots) + 1), (1 - self.confidence) / 2))
        return max(bootstrap, float(2 * stats.t.sf(abs(pivot), documents - 1)))

    def _pivots(self, residuals: Array, denominator: Array) -> Array:
        """(resampled ratio - ratio) / its own error, of every resample; see FLOOR."""
        n, whole = len(residuals), float(denominator.sum())
        counts = resampled(n, self.resamples, self.seed)
        total = np.maximum(counts @ denominator / whole, FLOOR) * whole
        shift = (counts @ residuals) / total
        # squared residuals about the resample's own ratio, expanded so that nothing cancels
        square = (
            counts @ np.square(residuals)
            - 2 * shift * (counts @ (residuals * denominator))
            + np.square(shift) * (counts @ np.square(denominator))
        )
        error = np.sqrt(n / (n - 1) * np.maximum(square, 0.0)) / np.abs(total)
        own = float(np.sqrt(n / (n - 1) * np.square(residuals).sum())) / abs(whole)
        return shift / np.maximum(error, FLOOR * own)


def carrying(residuals: Array) -> float:
    """How many documents carry the spread: (sum |r|)^2 / sum r^2.

    The number of documents if all residuals are alike in size, 0.64 of it for normal ones, and near the
    number of those that have any where the others have hardly one.
    """
    return float(np.abs(residuals).sum()) ** 2 / float(np.square(residuals).sum())


@lru_cache(maxsize=4)
def resampled(n: int, resamples: int, seed: int) -> Array:
    """How often each of n documents is drawn, [resample, n]; kept, since all estimates share it."""
    drawn = np.random.default_rng(seed).multinomial(n, np.full(n, 1 / n), size=resamples)
    return drawn.astype(np.float64)


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

    def cut(value: float | None) -> float | None:
        return None if value is None else min(max(value, 0.0), 1.0)

    return Estimate(cut(estimate.value), cut(estimate.low), cut(estimate.high), note=estimate.note)


def cells(quantities: Mapping[str, Estimate]) -> dict[str, float | str]:
    """Estimates as a table's cells: x, x_low, x_high.

    Undefined values are the word "undefined", so that no reader takes them for a number; bounds that
    are not given say why.
    """
    found: dict[str, float | str] = {}
    for quantity, estimate in quantities.items():
        absent = "undefined"
        for suffix, value in (("", estimate.value), ("_low", estimate.low), ("_high", estimate.high)):
            found[quantity + suffix] = absent if value is None else value
            absent = estimate.note or absent
    return found
