"""Names of everything that is stored, each specified once.

Dimensions: `input` (one window of text), `token` (position in the window), `target` (position
of a predicted token, 1 .. tokens - 1), `coefficient` (all sites' channels in network order),
`repeat` (draws of a random intervention).
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class Variable:
    """One stored array: its dimensions, dtype, unit and meaning."""

    dims: tuple[str, ...]
    dtype: str
    unit: str
    meaning: str


VARIABLES = {
    "coefficients": Variable(
        ("input", "token", "coefficient"), "float32", "1", "what the controllers emitted, live"
    ),
    "nll": Variable(("input", "target"), "float32", "nats", "live loss of each predicted token"),
    "tokens": Variable(("input", "token"), "int32", "id", "the inputs"),
    "document": Variable(("input",), "int64", "id", "the document an input is a window of"),
    "offset": Variable(("input",), "int64", "tokens", "where the window starts in the document"),
    "target": Variable(("target",), "int64", "position", "position of the predicted token"),
    "layer": Variable(("coefficient",), "int64", "index", "depth of the site, from 0"),
    "channel": Variable(("coefficient",), "int64", "index", "running number within the layer"),
    "site": Variable(("coefficient",), "str", "path", "the controller's module"),
    "replayed_nll": Variable(("repeat", "input", "target"), "float32", "nats", "loss under replay, as nll"),
    "mean": Variable(("token", "coefficient"), "float64", "1", "mean of the coefficients over the inputs"),
}
