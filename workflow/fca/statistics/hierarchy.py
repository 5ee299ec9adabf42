"""In: a ratio's two numbers per seed and document. Out: one value for the group, its error by source."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from fca.statistics.intervals import UNDEFINED, Estimate


@dataclass(frozen=True)
class Summary:
    """The estimate over seeds and documents; standard errors by source, None where undefined."""

    estimate: Estimate
    of_seeds: float | None = None
    of_documents: float | None = None


def over_seeds_and_documents(
    numerator: NDArray,
    denominator: NDArray,
    confidence: float = 0.95,
    repeats: tuple[float, int] | None = None,
) -> Summary:
    """sum(numerator) / sum(denominator), arrays [seed, document], as drawn from both.

    Seeds and documents are crossed: every model is evaluated on the same documents. The variance is
    the two-way cluster-robust one (Cameron, Gelbach and Miller 2011), seeds + documents - both, at
    least the larger of the two; t interval with Satterthwaite's degrees of freedom. With one seed
    it speaks of documents only, with one document of seeds only, with one of each of neither.
    repeats: standard error of the ratio due to random draws, already averaged, and their number.

    ASSUME: a group stands for models trained alike and texts drawn alike, so both count as drawn.
    The repeats' error is added in full: a draw may be common to all inputs (an order of layers), and
    where it is not, part of it is in the documents' spread too and the interval errs to the wide side.
    """
    total = float(denominator.sum())
    if total == 0:
        return Summary(UNDEFINED)
    value = float(numerator.sum()) / total
    residuals = (numerator - value * denominator) / total

    def variance(parts: NDArray) -> float:
        n = parts.size
        return n / (n - 1) * float(np.square(parts).sum()) if n > 1 else 0.0

    sources = {
        "seeds": (variance(residuals.sum(axis=1)), len(residuals) - 1),
        "documents": (variance(residuals.sum(axis=0)), residuals.shape[1] - 1),
    }
    known = {name: (v, freedom) for name, (v, freedom) in sources.items() if freedom > 0}
    if not known:
        return Summary(Estimate(value))
    parts = [v for v, _ in known.values()]
    whole = max(sum(parts) - variance(residuals), *parts) if len(parts) > 1 else parts[0]
    terms = [*known.values()]
    if repeats is not None and repeats[0] > 0:
        terms.append((repeats[0] ** 2, repeats[1] - 1))
        whole += repeats[0] ** 2
    doubt = sum(v**2 / freedom for v, freedom in terms)
    freedom = max(whole**2 / doubt if doubt > 0 else 1.0, float(min(f for _, f in terms)))
    half = float(stats.t.ppf((1 + confidence) / 2, freedom)) * whole**0.5
    return Summary(
        Estimate(value, value - half, value + half),
        *(known[name][0] ** 0.5 if name in known else None for name in ("seeds", "documents")),
    )
