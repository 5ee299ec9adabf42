"""In: the loss of every input under every intervention. Out: penalties and retentions.

Penalty of x: NLL(x) - NLL(correct). Gap: NLL(global_mean) - NLL(correct). Retention of x:
(NLL(global_mean) - NLL(x)) / gap. Intervals come from a paired bootstrap whose unit is the
document, since inputs cut from one document are not independent; never the token.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from scipy import stats

from fca.statistics.intervals import ALL, NOTHING, UNDEFINED, Bootstrap, Estimate, by_document, cells, holm


@dataclass(frozen=True)
class Losses:
    """Per document: sums of every intervention's loss, and the number of inputs; arrays [document]."""

    sums: Mapping[str, NDArray[np.float64]]
    inputs: NDArray[np.float64]
    bootstrap: Bootstrap

    @classmethod
    def of(cls, losses: Mapping[str, NDArray], documents: NDArray, bootstrap: Bootstrap) -> "Losses":
        """losses[name] is [input], repeats already averaged within the input."""
        sums = {name: by_document(values, documents) for name, values in losses.items()}
        return cls(sums, by_document(np.ones(len(documents)), documents), bootstrap)

    def total(self, weights: Mapping[str, float]) -> NDArray[np.float64]:
        """The weighted sum of interventions' losses, [document]."""
        return np.sum([w * self.sums[name] for name, w in weights.items()], axis=0)

    def contrast(self, weights: Mapping[str, float]) -> Estimate:
        """Mean over inputs of a weighted sum of losses, nats per token."""
        if not any(weights.values()):
            return NOTHING
        return self.bootstrap.ratio(self.total(weights), self.inputs)

    @cached_property
    def gap(self) -> Estimate:
        """Correct-to-GlobalMean gap; undefined where global_mean was not replayed."""
        if "global_mean" not in self.sums:
            return UNDEFINED
        return self.contrast({"global_mean": 1, "correct": -1})

    def of_gap(self, weights: Mapping[str, float]) -> Estimate:
        """A weighted sum of losses as a share of the gap.

        ASSUME: undefined where the gap's interval holds 0 or lies below it, since then one
        constant serves the model as well as its own coefficients and a share means nothing.
        """
        whole = {"global_mean": 1.0, "correct": -1.0}
        if not self.gap.above_zero:
            return UNDEFINED
        if not any(weights.values()):
            return NOTHING
        if weights == whole:
            return ALL
        return self.bootstrap.ratio(self.total(weights), self.total(whole))


def effects(
    losses: Mapping[str, NDArray], documents: NDArray, bootstrap: Bootstrap
) -> dict[str, dict[str, Estimate]]:
    """Per intervention: nll, penalty (both nats per token) and retention (1 = correct).

    losses[name] is [input]; "correct" must be among them. Retention is undefined without
    "global_mean" or where the gap's interval is not above 0.
    """
    known = Losses.of(losses, documents, bootstrap)
    return {
        name: {
            "nll": known.contrast({name: 1}),
            "penalty": known.contrast(difference(name, "correct")),
            "retention": known.of_gap(difference("global_mean", name)),
        }
        for name in losses
    }


def difference(a: str, b: str) -> dict[str, float]:
    """Weights of loss a minus loss b."""
    return {a: 0.0} if a == b else {a: 1.0, b: -1.0}


def significance(losses: Mapping[str, NDArray], documents: NDArray, bootstrap: Bootstrap) -> pd.DataFrame:
    """Columns intervention, p, p_holm: whether each penalty is 0; p_holm corrects for their number.

    p belongs to the penalty's interval: it is below 0.05 exactly where the 95 % interval excludes 0.
    """
    known = Losses.of(losses, documents, bootstrap)
    names = [name for name in losses if name != "correct"]
    values = [known.contrast(difference(name, "correct")).p for name in names]
    rows = [("correct", None, None), *zip(names, values, holm(values))]
    frame = pd.DataFrame(rows, columns=["intervention", "p", "p_holm"], dtype=object)
    return frame.where(frame.notna(), "undefined")


def over_seeds(values: ArrayLike, confidence: float = 0.95) -> dict[str, float | int | None]:
    """n, mean, standard deviation and t interval over independently trained models.

    With one seed the deviation and the interval are undefined (None).

    ASSUME: every model counts alike, also where the value is a ratio such as a retention: what is
    drawn is a model, and its own retention is what a reader would want to know.
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
    """One row per intervention: nll, nll_low, nll_high, penalty, ..., retention_high."""
    return pd.DataFrame([{"intervention": name, **cells(found)} for name, found in table.items()])
