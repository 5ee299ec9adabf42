"""Retention of every intervention: the share of the Correct-to-GlobalMean gap it keeps."""

from matplotlib.figure import Figure

from fca.output.plots.dots import panels
from fca.output.results import Results

CAPTION = (
    "Retention: the share of the gap between one constant everywhere (0 %) and the model's own "
    "coefficients (100 %, grey line) that each intervention keeps. One dot per training seed; bars "
    "are paired bootstrap intervals over documents. Undefined where the gap's interval contains 0."
)


def draw(results: Results) -> Figure:
    table = results.table("effects")
    names = [n for n in dict.fromkeys(table.get("intervention", [])) if n not in ("correct", "global_mean")]
    figure = panels(table, "retention", names, 100.0, "retention, %")
    for axes in figure.axes:
        axes.axvline(100, color="#7b8794", linewidth=1, linestyle=":", zorder=0)
    return figure
