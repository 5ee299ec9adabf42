"""In: results. Out: the figures of penalties and retentions: dots by intervention, and a scatter."""

import matplotlib.pyplot as plt
import pandas as pd
from matplotlib.figure import Figure

from fca.figures.dots import panels
from fca.figures.draw import caption
from fca.figures.style import colour_of, readable
from fca.results.results import Results, number


@caption(
    "Retention of every intervention: the share of the Correct-to-GlobalMean gap it keeps.",
    "Retention: the share of the gap between one constant everywhere (0 %) and the model's own "
    "coefficients (100 %, grey line) that each intervention keeps. One dot per training seed; bars "
    "are intervals over documents. Undefined where the gap's interval contains 0.",
)
def retention(results: Results) -> Figure:
    table = results.table("effects")
    names = [n for n in dict.fromkeys(table.get("intervention", [])) if n not in ("correct", "global_mean")]
    figure = panels(table, "retention", names, 100.0, "retention, %")
    for axes in figure.axes:
        axes.axvline(100, color="#7b8794", linewidth=1, linestyle=":", zorder=0)
    return figure


@caption(
    "Penalty of every intervention: how much worse than the model's own coefficients.",
    "Penalty of each intervention: loss under replay minus loss with the untouched coefficients, "
    "nats per predicted token. One dot per training seed; bars are intervals over "
    "documents. Zero means that the frozen model does not mind. Each panel has its own scale.",
)
def penalties(results: Results) -> Figure:
    table = results.table("effects")
    names = [n for n in dict.fromkeys(table.get("intervention", [])) if n != "correct"]
    return panels(table, "penalty", names, 1.0, "penalty, nats per token")


@caption(
    "Shapley shares of the gap: which factor of the coefficients carries the dependence.",
    "Each factor's Shapley share of the gap between one constant everywhere and the model's own "
    "coefficients: how much of it is recovered by keeping the factor, averaged over the orders in "
    "which factors are kept. Shares of a model add up to 100 %. Layer includes the channels within it "
    "unless they are listed. One dot per training seed; bars are intervals over documents.",
)
def factors(results: Results) -> Figure:
    table = results.table("effects", "factors")
    if not table.empty:
        table = table[table["what"] == "shapley"].rename(columns={"term": "intervention"})
    names = list(dict.fromkeys(table.get("intervention", [])))
    return panels(table, "share", names, 100.0, "share of the gap, %")


@caption(
    "How far the replayed predictions are from the live ones: Kullback-Leibler divergence.",
    "Divergence KL(live || replayed) of the next-token distributions, nats, averaged over positions and "
    "inputs. Two models can have equal loss and differ in function; then the penalty is near 0 and "
    "this is not. Total variation and top-1 agreement are in the table. Each panel has its own scale.",
)
def divergence(results: Results) -> Figure:
    table = results.table("effects", "divergence")
    if "kl" not in table:  # nothing was compared
        table = table.iloc[:0]
    names = [n for n in dict.fromkeys(table.get("intervention", [])) if n != "correct"]
    return panels(table, "kl", names, 1.0, "KL divergence, nats")


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
