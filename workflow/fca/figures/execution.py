"""In: results. Out: what is executed, as bars."""

import matplotlib.pyplot as plt
import pandas as pd
from matplotlib.figure import Figure

from fca.figures.draw import caption
from fca.figures.style import COLOURS
from fca.results.results import Results, number

MODES = ("live", "frozen", "static")


@caption(
    "What is executed: blocks per token, FLOPs and latency against the dense model.",
    "Execution of the live model, of its frozen replay, and of a replay of its static profile, against "
    "a dense model of the same layers, width and heads (MUDD differs from it in more than its "
    "controllers: compare live with frozen). Blocks are counted while they run. Latency ratios are "
    "taken within interleaved rounds; bars show medians, whiskers quartiles. The dotted line is the "
    "dense model.",
)
def execution(results: Results) -> Figure:
    groups = [models[0] for models in results.groups.values() if models[0].audited]
    figure, panels = plt.subplots(1, 3, figsize=(10.5, 0.9 + 0.72 * max(len(groups), 1)), sharey=True)
    for place, model in enumerate(groups):
        rows = model.table("execution").set_index("mode")
        for turn, mode in enumerate(MODES):
            y = place + 0.26 * (turn - 1)
            row = rows.loc[mode]
            blocks = 100 * row["blocks_executed_per_token"] / row["blocks_present"]
            panels[0].barh(y, blocks, height=0.24, color=COLOURS[turn], label=mode if not place else None)
            if "dense" in rows.index:
                flops = 100 * row["flops_per_token"] / rows.loc["dense", "flops_per_token"]
                panels[1].barh(y, flops, height=0.24, color=COLOURS[turn])
                latency(panels[2], row, y, COLOURS[turn])
    for axes, label in zip(
        panels,
        (
            "blocks executed per token,\n% of blocks present",
            "FLOPs per token,\n% of dense",
            "latency,\n% of dense",
        ),
    ):
        axes.axvline(100, color="#1f2933", linestyle=":", linewidth=1)
        axes.set_xlabel(label)
    panels[0].set_yticks(range(len(groups)), [m.name for m in groups])
    panels[0].invert_yaxis()
    if groups:
        figure.legend(loc="outside upper left", ncols=3)
    return figure


def latency(axes, row: pd.Series, y: float, colour: str) -> None:
    low, middle, high = (number(row[f"ratio_to_dense{s}"]) for s in ("_q1", "", "_q3"))
    if middle is None or low is None or high is None:
        return
    axes.barh(y, 100 * middle, height=0.24, color=colour)
    axes.plot([100 * low, 100 * high], [y, y], color="#1f2933", linewidth=1.2)
