"""In: results. Out: the coefficients as maps and profiles, and their variance by factor."""

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.figure import Figure

from fca.figures.draw import caption
from fca.figures.style import COLOURS
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


SHADES = {"static": 0.95, "position": 0.65, "input": 1.0}


@caption(
    "Shares of the coefficients' variance by factor and interaction.",
    "Exact decomposition of the coefficients' variance (eta squared; the shares of a bar add up to "
    "100 %). What varies by layer or channel alone is static; what holds the token varies with the "
    "position; what holds the input is what a dynamic model needs.",
)
def variance(results: Results) -> Figure:
    models = results.audited
    figure, axes = plt.subplots(figsize=(8.2, 1.5 + 0.42 * max(len(models), 1)))
    terms = list(dict.fromkeys(results.table("variance").get("term", [])))
    order = sorted(terms, key=lambda t: ("input" in t, "token" in t, t.count(":")))
    colours = palette(order)
    for place, model in enumerate(models):
        share = model.table("variance").set_index("term")["share"]
        start = 0.0
        for term in order:
            width = 100 * float(share.get(term, 0.0))
            axes.barh(place, width, left=start, color=colours[term], edgecolor="white", linewidth=0.4)
            if width > 6:
                axes.text(
                    start + width / 2,
                    place,
                    f"{width:.0f}",
                    ha="center",
                    va="center",
                    color="white",
                    fontsize=8,
                )
            start += width
    axes.set_yticks(range(len(models)), [f"{m.name}, seed {m.seed}" for m in models])
    axes.invert_yaxis()
    axes.set_xlim(0, 100)
    axes.set_xlabel("share of variance, %")
    handles = [plt.Rectangle((0, 0), 1, 1, color=colours[t]) for t in order]
    axes.legend(
        handles,
        [t.replace(":", " by ") for t in order],
        ncols=4,
        loc="lower left",
        bbox_to_anchor=(0, 1.02),
        fontsize=8,
    )
    return figure


def palette(terms: list[str]) -> dict[str, str]:
    """Greys for what is static, blues for positions, warm colours for what holds the input."""
    shades = {
        "static": ["#52606d", "#9aa5b1", "#7b8794"],
        "position": ["#0b69a3", "#2bb0ed", "#81defd"],
        "input": [COLOURS[1], COLOURS[4], COLOURS[3], "#8d2b0b", "#f0b429", "#ba2525"],
    }
    used = dict.fromkeys(shades, 0)
    chosen = {}
    for term in terms:
        group = "input" if "input" in term else "position" if "token" in term else "static"
        chosen[term] = shades[group][used[group] % len(shades[group])]
        used[group] += 1
    return chosen
