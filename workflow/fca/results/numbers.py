"""In: a group's models. Out: one number for all of them, with how sure it is."""

from collections.abc import Mapping, Sequence
from typing import Any

from fca.results.results import Model, note, number
from fca.statistics.effects import over_seeds
from fca.statistics.layer_penalties import free

OVER_DOCUMENTS = "bootstrap-t and t over documents"

Number = dict[str, Any]  # value, low, high (None where undefined), n, interval


def across(estimates: Sequence[Mapping[str, Any]]) -> Number:
    """One number for a group: mean and t interval over seeds, or the one model's own interval."""
    values = [e["value"] for e in estimates]
    defined = [v for v in values if v is not None]
    if len(values) == 1 or not defined:
        one = estimates[0]
        return {
            "value": one["value"],
            "low": one.get("low"),
            "high": one.get("high"),
            "n": len(values),
            "interval": OVER_DOCUMENTS if one.get("low") is not None else one.get("interval") or None,
        }
    if len(defined) < len(values):
        return {"value": None, "low": None, "high": None, "n": len(values), "interval": None}
    summary = over_seeds(defined)
    if summary["sd"] == 0:
        # what is counted is the same for every seed: there is nothing to be unsure of
        return {"value": summary["mean"], "low": None, "high": None, "n": len(values), "interval": None}
    return {
        "value": summary["mean"],
        "low": summary["low"],
        "high": summary["high"],
        "n": summary["n"],
        "sd": summary["sd"],
        "interval": "t over seeds",
    }


def effect(model: Model, intervention: str, quantity: str) -> dict[str, Any]:
    """A model's estimate of nll, penalty or retention; undefined where it was not replayed."""
    return row_of(model, "effects", {"intervention": intervention}, quantity)


def terms(model: Model) -> list[str]:
    """The factors that the gap was shared out to."""
    table = model.table("effects", "factors")
    return list(table.loc[table["what"] == "shapley", "term"])


def row_of(model: Model, table: str, where: Mapping[str, str], quantity: str) -> dict[str, Any]:
    """An estimate from one row of a table of the effects; undefined where there is none."""
    rows = model.table("effects", table)
    for column, value in where.items():
        rows = rows[rows[column] == value]
    if rows.empty or quantity not in rows:
        return dict.fromkeys(("value", "low", "high"))
    return estimate_of(rows.iloc[0], quantity)


def estimate_of(row: Mapping[str, Any], quantity: str) -> dict[str, Any]:
    """A row's value, low and high, None where undefined, and in `interval` why there is none."""
    found = {k: number(row[quantity + s]) for k, s in (("value", ""), ("low", "_low"), ("high", "_high"))}
    return found | {"interval": note(row[f"{quantity}_low"])}


def free_layers(models: Sequence[Model], threshold: float) -> dict[str, list[int]]:
    """Per map the layers that could be replaced for free in every seed."""
    found: dict[str, set[int]] = {}
    for model in models:
        for (name, order), rows in model.table("effects", "layers").groupby(["intervention", "order"]):
            layers = set(free(rows, threshold))
            key = f"{name}, {order}"
            found[key] = found[key] & layers if key in found else layers
    return {key: sorted(layers) for key, layers in found.items()}
