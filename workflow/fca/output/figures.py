"""In: an analysis' index. Out: figures/NAME.svg and NAME.png for every figure."""

from importlib import import_module
from pathlib import Path

import matplotlib.pyplot as plt

from fca.output import style
from fca.output.names import FIGURES
from fca.output.results import Results


def draw_figures(index: Path) -> None:
    style.apply()
    results = Results(index)
    folder = results.folder / "figures"
    folder.mkdir(parents=True, exist_ok=True)
    for name in FIGURES:
        figure = import_module(f"fca.output.plots.{name}").draw(results)
        figure.savefig(folder / f"{name}.svg", metadata={"Date": None})
        figure.savefig(folder / f"{name}.png")
        plt.close(figure)
