"""In: losses of all interventions. Out: one table of what each factor, and each combination, costs."""

import re

import pandas as pd

from fca.statistics.effects import Losses, difference
from fca.statistics.interactions import factorial, interactions, shapley
from fca.statistics.intervals import UNDEFINED, cells

COLUMNS = ["what", "term", *(q + s for q in ("effect", "share") for s in ("", "_low", "_high"))]


def factors(losses: Losses) -> pd.DataFrame:
    """Columns what, term, effect (nats per token) and share (of the gap), with intervals.

    what: interaction and factorial (of reassignments; terms are factors joined by `:`), shapley
    (of static profiles; the effects add up to the gap). Kinds whose losses are not at hand are absent.
    """
    rows = []
    for what, effects in (("interaction", interactions), ("factorial", factorial), ("shapley", shapley)):
        for term, weights in effects(losses.sums).items():
            found = {"effect": losses.contrast(weights), "share": losses.of_gap(weights)}
            rows.append({"what": what, "term": term, **cells(found)})
    return pd.DataFrame(rows, columns=COLUMNS)


def sinks(losses: Losses) -> pd.DataFrame:
    """What the first tokens contribute to a shuffle: it, less the same shuffle that spares them.

    Columns intervention (the one that spares them), first_tokens, part (nats per token) and share
    of the whole shuffle's penalty, undefined where that penalty's interval is not above 0.
    """
    rows = []
    for name in losses.sums:
        spared = re.search(r"_after_(\d+)", name)
        whole = re.sub(r"_after_\d+", "", name)
        if spared is None or whole not in losses.sums:
            continue
        part, penalty = difference(whole, name), difference(whole, "correct")
        share = (
            losses.bootstrap.ratio(losses.total(part), losses.total(penalty))
            if losses.contrast(penalty).above_zero
            else UNDEFINED
        )
        found = cells({"part": losses.contrast(part), "share": share})
        rows.append({"intervention": name, "first_tokens": int(spared.group(1)), **found})
    columns = [q + s for q in ("part", "share") for s in ("", "_low", "_high")]
    return pd.DataFrame(rows, columns=["intervention", "first_tokens", *columns])
