"""In: the loss of every input under every intervention. Out: penalties and retentions.

Penalty of x: NLL(x) - NLL(correct). Gap: NLL(global_mean) - NLL(correct). Retention of x:
(NLL(global_mean) - NLL(x)) / gap. Intervals come from a paired bootstrap whose unit is the
document, since inputs cut from one document are not independent; never the token.
"""

import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from scipy import stats


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
class Bootstrap:
    """How intervals are made: resamples, confidence in (0, 1), seed."""

    resamples: int = 2000
    confidence: float = 0.95
    seed: int = 0

    def interval(self, statistic: Callable[..., NDArray], *sums: NDArray, value: float) -> Estimate:
        """BCa interval of statistic(*sums), paired over units; sums are arrays [unit].

        statistic takes arrays [..., unit] and reduces the last axis. With fewer than two units
        there is no interval. BCa (Efron 1987) since retention is a ratio and its bootstrap
        distribution is skewed; where it is undefined because the resamples do not vary, the
        interval is the value itself.
        """
        if len(sums[0]) < 2:
            return Estimate(value)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", stats.DegenerateDataWarning)
            warnings.simplefilter("ignore", RuntimeWarning)
            result = stats.bootstrap(
                sums,
                lambda *resampled, axis=-1: statistic(*resampled),
                paired=True,
                vectorized=True,
                n_resamples=self.resamples,
                confidence_level=self.confidence,
                method="BCa",
                rng=np.random.default_rng(self.seed),
            )
        low, high = (float(v) for v in result.confidence_interval)
        if np.isfinite([low, high]).all():
            return Estimate(value, low, high)
        resampled = result.bootstrap_distribution
        if not np.isfinite(resampled).all():
            return Estimate(value)
        tail = (1 - self.confidence) / 2
        low, high = (float(v) for v in np.quantile(resampled, [tail, 1 - tail]))
        return Estimate(value, low, high)


def by_document(values: NDArray, documents: NDArray) -> NDArray[np.float64]:
    """Sums of values [input] over each document's inputs, [document]."""
    group = np.unique(documents, return_inverse=True)[1]
    return np.bincount(group, weights=np.asarray(values, dtype=np.float64)).astype(np.float64)


def effects(
    losses: Mapping[str, NDArray], documents: NDArray, bootstrap: Bootstrap
) -> dict[str, dict[str, Estimate]]:
    """Per intervention: nll, penalty (both nats per token) and retention (1 = correct).

    losses[name] is [input], repeats already averaged within the input; "correct" must be among
    them. Retention is undefined without "global_mean" or where the gap's interval holds 0.

    ASSUME: it is undefined too where the gap lies below 0, since then one constant serves the
    model better than its own coefficients and a share of that gap means nothing.
    """
    inputs = by_document(np.ones(len(documents)), documents)
    sums = {name: by_document(values, documents) for name, values in losses.items()}
    right, constant = sums["correct"], sums.get("global_mean")

    def mean(x: NDArray, n: NDArray) -> NDArray:
        return x.sum(-1) / n.sum(-1)

    def penalty(x: NDArray, r: NDArray, n: NDArray) -> NDArray:
        return (x - r).sum(-1) / n.sum(-1)

    def retention(x: NDArray, r: NDArray, g: NDArray) -> NDArray:
        return (g - x).sum(-1) / (g - r).sum(-1)

    def estimate(statistic, *arrays: NDArray) -> Estimate:
        return bootstrap.interval(statistic, *arrays, value=float(statistic(*arrays)))

    gap = UNDEFINED if constant is None else estimate(penalty, constant, right, inputs)
    table = {}
    for name, x in sums.items():
        table[name] = {
            "nll": estimate(mean, x, inputs),
            "penalty": estimate(penalty, x, right, inputs),
            "retention": (
                estimate(retention, x, right, constant)
                if constant is not None and gap.above_zero
                else UNDEFINED
            ),
        }
    return table


def over_seeds(values: ArrayLike, confidence: float = 0.95) -> dict[str, float | int | None]:
    """n, mean, standard deviation and t interval over independently trained models.

    With one seed the deviation and the interval are undefined (None).
    """
    models = np.asarray(values, dtype=np.float64)
    n, mean = len(models), float(models.mean())
    summary: dict[str, float | int | None] = {"n": n, "mean": mean}
    if n < 2:
        return summary | {"sd": None, "low": None, "high": None}
    sd = float(models.std(ddof=1))
    half = float(stats.t.ppf((1 + confidence) / 2, n - 1)) * sd / n**0.5
    return summary | {"sd": sd, "low": mean - half, "high": mean + half}


def tidy(table: Mapping[str, Mapping[str, Estimate]]) -> pd.DataFrame:
    """One row per intervention: nll, nll_low, nll_high, penalty, ..., retention_high.

    Undefined values are the word "undefined", so that no reader takes them for a number.
    """
    rows = []
    for name, quantities in table.items():
        row: dict[str, object] = {"intervention": name}
        for quantity, e in quantities.items():
            for suffix, value in (("", e.value), ("_low", e.low), ("_high", e.high)):
                row[quantity + suffix] = "undefined" if value is None else value
        rows.append(row)
    return pd.DataFrame(rows)
