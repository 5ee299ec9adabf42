"""How all figures look: one place for fonts, colours and the order of things."""

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
from matplotlib.axes import Axes

# Okabe and Ito's colours, told apart with colour-blind eyes too.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#999933")
INK = "#1f2933"
FAINT = "#c8d0d8"


def apply() -> None:
    """Set matplotlib's defaults; SVGs come out the same on every run."""
    plt.rcParams.update(
        {
            "font.size": 9.5,
            "font.family": "DejaVu Sans",
            "axes.spines.top": False,
            "axes.spines.right": False,
            "axes.edgecolor": INK,
            "axes.labelcolor": INK,
            "axes.titlesize": 10,
            "axes.titleweight": "bold",
            "axes.titlelocation": "left",
            "text.color": INK,
            "xtick.color": INK,
            "ytick.color": INK,
            "legend.frameon": False,
            "figure.constrained_layout.use": True,
            "svg.hashsalt": "fca",
            "savefig.dpi": 160,
        }
    )


def colour_of(names: list[str]) -> dict[str, str]:
    return {name: COLOURS[i % len(COLOURS)] for i, name in enumerate(names)}


def readable(intervention: str) -> str:
    """An intervention's name as a tick label: one part a line."""
    return intervention.replace("+", "\n+ ").replace("_", " ")


def zero_line(axes: Axes, at: float = 0.0) -> None:
    axes.axvline(at, color=FAINT, linewidth=1, zorder=0)
