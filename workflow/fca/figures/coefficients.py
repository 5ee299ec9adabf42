"""In: results. Out: the coefficients as maps and profiles."""

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.figure import Figure

from fca.figures.draw import caption
from fca.results.results import Results


@caption(
    "The coefficients themselves: mean by layer and token, spread over inputs, static profile.",
    "Coefficients of one model per group. Left: mean over inputs, by layer and token. Middle: "
    "standard deviation over inputs at the same place, which no static profile can follow. Right: "
    "the layerwise mean, one value per layer, with the spread over inputs and tokens. With several "
    "channels per layer their mean is shown.",
)
def coefficients(results: Results) -> Figure:
    models = [m[0] for m in results.groups.values() if m[0].audited]
    count = max(len(models), 1)
    figure, grid = plt.subplots(
        count, 3, figsize=(10, 0.7 + 1.75 * count), squeeze=False, width_ratios=[3, 3, 1.4]
    )
    for row, model in zip(grid, models):
        maps = model.arrays("variance", "maps.npz")
        layers = [str(layer) for layer in maps["layer"]]
        for axes, values, title, colours in (
            (row[0], maps["mean"], f"{model.name}: mean", "viridis"),
            (row[1], maps["deviation"], "deviation over inputs", "magma"),
        ):
            image = axes.imshow(values, aspect="auto", cmap=colours, interpolation="nearest", origin="lower")
            axes.set_title(title)
            axes.set_yticks(range(len(layers)), layers)
            axes.set_xlabel("token")
            axes.set_ylabel("layer")
            figure.colorbar(image, ax=axes, pad=0.01)
        profile = maps["mean"].mean(axis=1)
        spread = np.sqrt((maps["deviation"] ** 2).mean(axis=1) + maps["mean"].var(axis=1))
        row[2].errorbar(profile, range(len(layers)), xerr=spread, fmt="o-", color="#0072B2", capsize=2)
        row[2].set_title("static profile")
        row[2].set_yticks(range(len(layers)), layers)
        row[2].set_xlabel("coefficient")
    return figure
