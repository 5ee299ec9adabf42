"""In: results. Out: layer maps."""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from fca.figures.draw import caption
from fca.figures.style import readable
from fca.results.results import Results
from fca.statistics.layer_penalties import free


@caption(
    "Layer maps: the penalty of an intervention on one layer, and which layers could be frozen for free.",
    "Penalty of each intervention on one layer at a time, all others left correct (or, where so named, "
    "on all layers up to it from the bottom or from the top), nats per token; mean over training seeds. "
    "Framed layers could be frozen for free: in every seed the interval lies below the convention. "
    "Each panel has its own colours, which end at its largest penalty or, if that is larger, the convention.",
)
def layers(results: Results) -> Figure:
    table = results.table("effects", "layers")
    names = list(dict.fromkeys(table["model"]))
    rows = max(len(table[["intervention", "order"]].drop_duplicates()) if len(names) else 1, 1)
    count = max(len(names), 1)
    figure, grid = plt.subplots(count, 1, figsize=(8.2, 0.6 + count * (0.85 + 0.36 * rows)), squeeze=False)
    for axes, name in zip(grid[:, 0], names):
        panel(figure, axes, table[table["model"] == name], results.config["conventions"]["free"])
        axes.set_title(name)
    if not names:
        figure.text(0.5, 0.5, "no layer maps in this analysis", ha="center", va="center")
        grid[0, 0].set_axis_off()
    return figure


def panel(figure: Figure, axes: plt.Axes, table: pd.DataFrame, threshold: float) -> None:
    maps = list(table.groupby(["intervention", "order"], sort=False))
    layers = sorted(table["layer"].unique())
    values = np.full((len(maps), len(layers)), np.nan)
    top = max(float(table.groupby(["intervention", "order", "layer"])["penalty"].mean().max()), threshold)
    for place, (_, rows) in enumerate(maps):
        means = rows.groupby("layer")["penalty"].mean()
        values[place] = [means.get(layer, np.nan) for layer in layers]
        frozen = set.intersection(*(set(free(one, threshold)) for _, one in rows.groupby("seed")))
        for column, layer in enumerate(layers):
            value = values[place, column]
            if layer in frozen:
                box = (column - 0.46, place - 0.44)
                axes.add_patch(plt.Rectangle(box, 0.92, 0.88, fill=False, edgecolor="#009E73", linewidth=2))
            if len(layers) <= 24:
                ink = "white" if value > 0.6 * top else "#1f2933"
                axes.text(column, place, f"{value:.4f}", ha="center", va="center", fontsize=7, color=ink)
    image = axes.imshow(values, aspect="auto", cmap="Oranges", vmin=0.0, vmax=top)
    figure.colorbar(image, ax=axes, pad=0.01)
    axes.set_xticks(range(len(layers)), [str(layer) for layer in layers])
    labels = [
        readable(i).replace("\n", " ") + ("" if o == "alone" else f", {readable(o)}") for (i, o), _ in maps
    ]
    axes.set_yticks(range(len(maps)), labels)
    axes.set_xlabel("layer")
