"""In: results. Out: the report's detailed tables, as rows of text."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

from fca.report.wording import interval
from fca.results.groups import hierarchy
from fca.results.numbers import estimate_of
from fca.results.results import Results, number
from fca.statistics.layer_penalties import free

TERMS = {
    "shapley": "Shapley share of the gap",
    "interaction": "interaction of reassignments",
    "factorial": "factorial effect of reassignments",
}


@dataclass(frozen=True)
class Detail:
    """One table: a title, what it says, its head and its rows."""

    title: str
    text: str
    head: tuple[str, ...]
    rows: Sequence[tuple[str, ...]]


def details(results: Results) -> list[Detail]:
    """Factors, first tokens, layers, groups over seeds, and correlations; empty ones left out."""
    found = [factors(results), sinks(results), layers(results), groups(results), correlations(results)]
    return [detail for detail in found if detail.rows]


def value(row: Any, quantity: str, scale: float, form: str, unit: str = "") -> str:
    """A value with its interval, or the word undefined."""
    found = estimate_of(row, quantity)
    if found["value"] is None:
        return "undefined"
    return f"{scale * found['value']:{form}}{unit}{interval(found, scale, form)}"


def both(row: Any, quantity: str) -> tuple[str, str]:
    """A quantity in nats per token, and its share in percent."""
    return value(row, quantity, 1, "+.4f"), value(row, "share", 100, ".1f")


def who(row: Any) -> str:
    return f"{row['model']}, seed {row['seed']}"


def factors(results: Results) -> Detail:
    rows = [
        (who(r), TERMS[r["what"]], r["term"].replace(":", " x "), *both(r, "effect"))
        for r in results.table("effects", "factors").to_dict("records")
    ]
    return Detail(
        "Factors",
        "Which factor carries the dependence. An interaction is what breaking several alignments costs "
        "beyond its parts; Shapley shares of a model add up to its gap.",
        ("Model", "Kind", "Factor", "Effect, nats/token", "Share of the gap, %"),
        rows,
    )


def sinks(results: Results) -> Detail:
    rows = [
        (who(r), r["intervention"], str(r["first_tokens"]), *both(r, "part"))
        for r in results.table("effects", "sinks").to_dict("records")
    ]
    return Detail(
        "The first tokens",
        "What a shuffle's penalty owes to the first tokens (attention sinks): the shuffle of all tokens "
        "less the one that spares them.",
        ("Model", "Intervention", "First tokens", "Their part, nats/token", "Share of the penalty, %"),
        rows,
    )


def layers(results: Results) -> Detail:
    table = results.table("effects", "layers")
    threshold = results.config["conventions"]["free"]
    rows = []
    if not table.empty:
        for (model, seed, name, order), one in table.groupby(
            ["model", "seed", "intervention", "order"], sort=False
        ):
            found = free(one, threshold)
            worst = one.loc[pd.to_numeric(one["penalty"]).idxmax()]
            rows.append(
                (
                    f"{model}, seed {seed}",
                    name if order == "alone" else f"{name}, {order}",
                    f"{len(found)} of {len(one)}: {', '.join(map(str, found)) or 'none'}",
                    str(worst["layer"]),
                    value(worst, "penalty", 1, "+.4f"),
                )
            )  # fmt: skip
    return Detail(
        "Layers",
        "Which layers' coefficients could be replaced for free, one layer at a time: those whose interval "
        f"lies below {threshold:g} nats per token. Freezing several at once can cost more than its parts.",
        ("Model", "Intervention", "Free layers", "Most sensitive layer", "Its penalty, nats/token"),
        rows,
    )


def groups(results: Results) -> Detail:
    """Groups of several seeds: one value over seeds and documents, and where its error comes from."""
    rows = [
        (
            r["model"],
            r["intervention"],
            value(r, "value", 100, ".1f", " %")
            if r["quantity"] == "retention"
            else value(r, "value", 1, "+.4f"),
            *(error(r, f"error_of_{source}") for source in ("seeds", "documents", "repeats")),
        )
        for r in hierarchy(results).to_dict("records")
        if r["seeds"] > 1 and r["intervention"] not in ("correct", "global_mean")
    ]
    return Detail(
        "Groups over seeds and documents",
        "Penalties (nats per token) and retentions (%) with seeds and documents both taken as drawn, and "
        "the standard error due to each and to the repeats of random interventions.",
        ("Group", "Intervention", "Value", "Error of seeds", "of documents", "of repeats"),
        rows,
    )


def error(row: Any, column: str) -> str:
    """A standard error in the unit of its value, or the word undefined."""
    known = number(row[column])
    if known is None:
        return "undefined"
    return f"{100 * known:.2f} %" if row["quantity"] == "retention" else f"{known:.4f}"


def correlations(results: Results) -> Detail:
    rows = [
        (who(r), r["factor"], value(r, "icc", 1, ".3f"))
        for r in results.table("variance", "icc").to_dict("records")
    ]
    return Detail(
        "Intraclass correlations",
        "How alike a coefficient is within an input, or at a position: that variance component over all.",
        ("Model", "Within", "Correlation"),
        rows,
    )
