"""In: results. Out: penalties by position and token frequency, as lines."""

import matplotlib.pyplot as plt
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from fca.figures.draw import caption
from fca.figures.style import COLOURS, readable
from fca.results.results import Results, number

SHOWN = ("cross_input", "token_shuffle", "layer_mean", "layer_token_mean", "global_mean")


@caption(
    "Where the penalty arises: by position in the window and by how frequent the predicted token is.",
    "Penalty within classes of predicted tokens, nats per token, of the first seed of each group. Left: "
    "by position in the window. Right: by the token's count in the calibration text. Bars are bootstrap "
    "intervals over documents.",
)
def views(results: Results) -> Figure:
    models = [m[0] for m in results.groups.values() if m[0].audited]
    count = max(len(models), 1)
    figure, grid = plt.subplots(count, 2, figsize=(9.4, 0.5 + 2.1 * count), squeeze=False, sharey="row")
    for row, model in zip(grid, models):
        for axes, name, label in (
            (row[0], "positions", "position of the predicted token"),
            (row[1], "frequencies", "count of the token in the calibration text"),
        ):
            lines(axes, model.table("effects", name))
            axes.set_xlabel(label)
        row[0].set_title(model.name)
        row[0].set_ylabel("penalty, nats/token")
    handles, labels = grid[0, 0].get_legend_handles_labels()
    if handles:
        figure.legend(handles, labels, loc="outside upper center", ncols=len(labels), fontsize=8)
    return figure


def lines(axes: Axes, table: pd.DataFrame) -> None:
    classes = sorted(set(zip(table["from"], table["to"])))
    place = {start: i for i, (start, _) in enumerate(classes)}
    for turn, name in enumerate(n for n in SHOWN if n in set(table["intervention"])):
        rows = table[table["intervention"] == name]
        at = [place[start] + 0.08 * (turn - 2) for start in rows["from"]]
        colour = COLOURS[SHOWN.index(name)]
        axes.plot(at, rows["penalty"], "o-", color=colour, markersize=3.5, linewidth=1, label=readable(name))
        for x, *bounds in zip(at, rows["penalty_low"], rows["penalty_high"]):
            ends = [end for bound in bounds if (end := number(bound)) is not None]
            if len(ends) == 2:
                axes.plot([x, x], ends, color=colour, linewidth=1.4, alpha=0.6)
    axes.axhline(0, color="#c8d0d8", linewidth=1, zorder=0)
    axes.set_xticks(range(len(classes)), [str(a) if a == b else f"{a}-{b}" for a, b in classes])
