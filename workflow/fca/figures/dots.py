"""In: the effects table. Out: a dot and interval per intervention, one panel per model group."""

from collections.abc import Sequence

import matplotlib.pyplot as plt
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from fca.figures.style import colour_of, readable, zero_line
from fca.results.results import number


def panels(
    table: pd.DataFrame, quantity: str, interventions: Sequence[str], scale: float, label: str
) -> Figure:
    """Every seed its own dot with its interval; all groups share the scale's meaning."""
    groups = list(dict.fromkeys(table["model"]))
    colours = colour_of(groups)
    shape = (1, max(len(groups), 1))
    size = (3.0 + 2.2 * max(len(groups), 1), 0.9 + 0.46 * max(len(interventions), 1))
    figure, grid = plt.subplots(*shape, figsize=size, sharey=True, squeeze=False)
    if not interventions:
        figure.text(0.5, 0.5, "not measured in this analysis", ha="center", va="center")
        for axes in grid[0]:
            axes.set_axis_off()
        return figure
    for axes, group in zip(grid[0], groups):
        rows = table[table["model"] == group]
        for place, name in enumerate(interventions):
            draw(axes, rows[rows["intervention"] == name], place, quantity, scale, colours[group])
        axes.set_title(group)
        axes.set_xlabel(label)
        zero_line(axes)
        axes.set_yticks(range(len(interventions)), [readable(name) for name in interventions])
        axes.set_ylim(len(interventions) - 0.4, -0.6)
        axes.grid(axis="y", color="#eef1f4", zorder=0)
        axes.set_axisbelow(True)
        axes.locator_params(axis="x", nbins=4)
    return figure


def draw(axes: Axes, rows: pd.DataFrame, place: int, quantity: str, scale: float, colour: str) -> None:
    for turn, (_, row) in enumerate(rows.iterrows()):
        y = place + 0.18 * (turn - (len(rows) - 1) / 2)
        value, low, high = (number(row[f"{quantity}{s}"]) for s in ("", "_low", "_high"))
        if value is None:
            if turn == 0:
                middle = axes.get_yaxis_transform()
                axes.text(
                    0.98,
                    place,
                    "undefined",
                    ha="right",
                    va="center",
                    fontsize=8,
                    color="#7b8794",
                    transform=middle,
                )
            continue
        if low is not None and high is not None:
            axes.plot([scale * low, scale * high], [y, y], color=colour, linewidth=1.6, alpha=0.75)
        axes.plot([scale * value], [y], "o", color=colour, markersize=4.5)
