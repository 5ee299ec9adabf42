"""In: what each input adds to the sums of squares. Out: variance shares and correlations, with intervals."""

from collections.abc import Mapping

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from fca.errors import Undefined
from fca.interventions.profiles import ORACLES, PROFILES, static
from fca.statistics.intervals import UNDEFINED, Bootstrap, by_document, cells, within
from fca.statistics.variance import Decomposition, effect

Contributions = Mapping[tuple[str, bool, bool], NDArray[np.float64]]  # norm -> [input]
ALL = {**PROFILES, **ORACLES}


def variance_shares(
    decomposition: Decomposition, parts: Contributions, documents: NDArray, bootstrap: Bootstrap
) -> pd.DataFrame:
    """The decomposition's table with share_low and share_high, from a bootstrap over documents.

    Undefined (no interval) for fewer than two documents and for constant coefficients.
    """
    table = decomposition.table()
    total = parts["channel", True, True] - parts["", False, False]
    bounds = []
    for _, depth, below, crossing, _ in decomposition.terms():
        found = UNDEFINED
        if table["share"].sum() > 0:
            own = effect(parts, depth, below, crossing)
            found = within(bootstrap.ratio(by_document(own, documents), by_document(total, documents)))
        bounds.append(cells({"share": found}))
    for side in ("share_low", "share_high"):
        table[side] = [row[side] for row in bounds]
    return table


def intraclass(
    decomposition: Decomposition, parts: Contributions, documents: NDArray, bootstrap: Bootstrap
) -> pd.DataFrame:
    """Columns factor (input, token), icc, icc_low, icc_high.

    How alike a coefficient is within an input (or at a position): that factor's variance component
    over all three, from the two-way random-effects model input + token + rest, every coefficient
    about its own mean, pooled over coefficients (Shrout and Fleiss 1979). Undefined for one input,
    one token, or coefficients that vary with neither.

    ASSUME: a component estimated below 0 is reported as 0.
    """
    inputs, (tokens, coefficients) = decomposition.inputs, decomposition.sum.shape
    rows = {"input": UNDEFINED, "token": UNDEFINED}
    table = decomposition.table().set_index("term")["share"]
    varies = sum(share for term, share in table.items() if {"input", "token"} & set(str(term).split(":")))
    if inputs > 1 and tokens > 1 and varies > 0:
        squares = {
            crossing: sum(effect(parts, d, b, c) for _, d, b, c, _ in decomposition.terms() if c == crossing)
            for crossing in (frozenset({"input"}), frozenset({"token"}), frozenset({"input", "token"}))
        }
        by_input, by_token, rest = squares.values()
        rest = rest / (coefficients * (inputs - 1) * (tokens - 1))
        of_input = (by_input / (coefficients * (inputs - 1)) - rest) / tokens
        of_token = (by_token / (coefficients * (tokens - 1)) - rest) / inputs
        total = by_document(of_input + of_token + rest, documents)
        for factor, own in (("input", of_input), ("token", of_token)):
            rows[factor] = within(bootstrap.ratio(by_document(own, documents), total))
    return pd.DataFrame([{"factor": name, **cells({"icc": e})} for name, e in rows.items()])


def missed(values: NDArray, mean: NDArray, layers: NDArray) -> NDArray[np.float64]:
    """Squared error of every profile and oracle, [input, profile], in the order of `ALL`.

    values [input, token, coefficient] of the evaluation set; mean [token, coefficient] of the
    calibration set. NaN where a profile is not defined for these layers.
    """
    values = np.asarray(values, dtype=np.float64)
    found = np.full((len(values), len(ALL)), np.nan)
    for k, (name, kept) in enumerate(ALL.items()):
        try:
            guess = static(values if name in ORACLES else mean, kept, layers)
        except Undefined:
            continue
        found[:, k] = np.square(values - guess).sum(axis=(1, 2))
    return found


def captured(errors: NDArray, documents: NDArray, bootstrap: Bootstrap) -> pd.DataFrame:
    """Share of the coefficients' variance that each static profile keeps, out of sample.

    errors: of `missed`. Columns profile, oracle, captured (1 - squared error over that of
    global_mean) with its interval: 0 is one constant everywhere, 1 the coefficients themselves, as
    for retention; below 0 where a profile predicts worse. Undefined for constant coefficients.
    """
    constant = by_document(errors[:, list(ALL).index("global_mean")], documents)
    rows = []
    for name, own in zip(ALL, errors.T):
        if np.isnan(own).any():
            continue
        kept = bootstrap.ratio(constant - by_document(own, documents), constant)
        rows.append({"profile": name, "oracle": name in ORACLES, **cells({"captured": kept})})
    return pd.DataFrame(rows)
