"""In: results. Out: variance against function, as a scatter."""

import matplotlib.pyplot as plt
import pandas as pd
from matplotlib.figure import Figure

from fca.figures.draw import caption
from fca.figures.style import colour_of, readable
from fca.results.results import Results, number

MARKERS = ("o", "s", "^", "D", "v", "P", "X", "<", ">", "*", "h", "d")


@caption(
    "Variance against function: what a profile keeps of the coefficients, and of what they are good for.",
    "Every dot is a static profile of one model: the share of the coefficients' variance that it keeps "
    "out of sample (estimated on the calibration inputs, scored on the evaluation inputs; oracles, "
    "hollow, use the evaluation inputs' own means) against the share of the gap that it keeps. On the "
    "dotted line variance and function go together; above it, variance was lost that the model does "
    "not need. Bars are intervals over documents. Models whose retention is undefined are left out.",
)
def function(results: Results) -> Figure:
    table = points(results)
    figure, axes = plt.subplots(figsize=(8.2, 4.8))
    colours = colour_of(list(dict.fromkeys(m.name for m in results.audited)))
    marker = {name: MARKERS[i % len(MARKERS)] for i, name in enumerate(dict.fromkeys(table["profile"]))}
    for row in table.to_dict("records"):
        x, y = 100 * row["captured"], 100 * row["retention"]
        colour = colours[row["model"]]
        for side, at in (("captured", y), ("retention", x)):
            low, high = (number(row[f"{side}_{end}"]) for end in ("low", "high"))
            if low is not None and high is not None:
                ends = [100 * low, 100 * high]
                line = (ends, [at, at]) if side == "captured" else ([at, at], ends)
                axes.plot(*line, color=colour, linewidth=1, alpha=0.5)
        face = "white" if row["oracle"] else colour
        axes.plot([x], [y], marker[row["profile"]], color=colour, markerfacecolor=face, markersize=6.5)
    axes.axline((0, 0), slope=1, color="#7b8794", linestyle=":", linewidth=1, zorder=0)
    axes.set_xlabel("share of variance kept, %")
    axes.set_ylabel("share of the gap kept (retention), %")
    handles = [plt.Line2D([], [], color=c, marker="o", linestyle="", label=m) for m, c in colours.items()]
    handles += [
        plt.Line2D([], [], color="#52606d", marker=m, linestyle="", label=readable(p))
        for p, m in marker.items()
    ]
    if handles:
        axes.legend(handles=handles, loc="center left", bbox_to_anchor=(1.01, 0.5), fontsize=8)
    return figure


def points(results: Results) -> pd.DataFrame:
    """One row per model and profile with both shares defined."""
    kept, variance = results.table("effects"), results.table("variance", "captured")
    columns = ["model", "profile", "oracle", "captured", "retention"]
    if kept.empty or variance.empty:
        return pd.DataFrame(columns=columns)
    both = variance.merge(
        kept, left_on=["model", "kind", "seed", "profile"], right_on=["model", "kind", "seed", "intervention"]
    )
    numbers = {c: [number(v) for v in both[c]] for c in ("captured", "retention")}
    return both.assign(**numbers).dropna(subset=["captured", "retention"])
