"""In: a ratio's two numbers per document. Out: how many documents an interval of some width needs."""

from dataclasses import dataclass
from math import ceil

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from fca.statistics.intervals import linear

MOST = 10**9  # beyond this the answer is "more than anyone has"


@dataclass(frozen=True)
class Power:
    """value: the ratio; width: of its t interval now; documents: needed for the width asked for.

    None where undefined: fewer than two documents, or more needed than MOST.
    """

    value: float
    width: float | None
    documents: int | None


def power(numerator: NDArray, denominator: NDArray, width: float, confidence: float) -> Power | None:
    """What width an interval of sum(numerator) / sum(denominator) has, arrays [document], and what
    it takes to make it `width` wide. None where the ratio is undefined.

    ASSUME: further documents spread like those at hand, so the error falls with their root; the
    interval is Student's t on the linearised error, whose width needs no resampling.
    """
    found = linear(np.asarray(numerator, dtype=np.float64), np.asarray(denominator, dtype=np.float64))
    if found is None:
        return None
    n = len(numerator)
    if n < 2:
        return Power(found.value, None, None)
    spread = found.error * n**0.5

    def wide(count: int) -> float:
        return float(2 * stats.t.ppf((1 + confidence) / 2, count - 1)) * spread / count**0.5

    return Power(found.value, wide(n), smallest(wide, width))


def smallest(wide, width: float) -> int | None:
    """The smallest count >= 2 whose wide(count), falling with it, is at most `width`; by bisection."""
    high = 2
    while wide(high) > width:
        high *= 2
        if high > MOST:
            return None
    low = max(high // 2, 1)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if wide(middle) <= width else (middle, high)
    return high


def inputs_for(documents: int | None, inputs: int, of: int) -> int | None:
    """Inputs in that many documents, at the present number of inputs per document."""
    return None if documents is None else ceil(documents * inputs / of)
