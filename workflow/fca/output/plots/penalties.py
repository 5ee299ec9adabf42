"""Penalty of every intervention: how much worse than the model's own coefficients."""

from matplotlib.figure import Figure

from fca.output.plots.dots import panels
from fca.output.results import Results

CAPTION = (
    "Penalty of each intervention: loss under replay minus loss with the untouched coefficients, "
    "nats per predicted token. One dot per training seed; bars are paired bootstrap intervals over "
    "documents. Zero means that the frozen model does not mind. Each panel has its own scale."
)


def draw(results: Results) -> Figure:
    table = results.table("effects")
    names = [n for n in dict.fromkeys(table.get("intervention", [])) if n != "correct"]
    return panels(table, "penalty", names, 1.0, "penalty, nats per token")
