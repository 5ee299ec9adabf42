"""In: a number with its interval. Out: the same in words."""

from fca.results.numbers import Number
from fca.statistics.intervals import TOO_FEW


def nats(estimate: Number) -> str:
    if estimate["value"] is None:
        return "undefined"
    return f"{estimate['value']:+.4f} nats per token{interval(estimate, 1, '+.4f')}"


def percent(estimate: Number) -> str:
    if estimate["value"] is None:
        return "undefined"
    return f"{100 * estimate['value']:.1f} %{interval(estimate, 100, '.1f')}"


def interval(estimate: Number, scale: float, form: str) -> str:
    if estimate["low"] is None or estimate["high"] is None:
        return f" ({TOO_FEW})" if estimate.get("interval") == TOO_FEW else ""
    return f" [{scale * estimate['low']:{form}}, {scale * estimate['high']:{form}}]"
