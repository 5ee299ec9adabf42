"""In: an analysis' index. Out: figures/NAME.svg and NAME.png for every figure.

A figure is a function of results that `caption` gives a title, and a text that tells what to see.
"""

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path

import matplotlib.pyplot as plt
from matplotlib.figure import Figure

from fca.figures import FIGURES, style
from fca.results.results import Results

Draw = Callable[[Results], Figure]


@dataclass(frozen=True)
class Captioned:
    """A figure: how it is drawn, its title and its caption."""

    draw: Draw
    title: str
    caption: str

    def __call__(self, results: Results) -> Figure:
        return self.draw(results)


def caption(title: str, text: str) -> Callable[[Draw], Captioned]:
    """Marks the function that draws a figure."""
    return lambda draw: Captioned(draw, title, text)


def figure(name: str) -> Captioned:
    """A figure by its name in FIGURES."""
    return getattr(import_module(f"fca.figures.{FIGURES[name]}"), name)


def draw_figures(index: Path) -> None:
    style.apply()
    results = Results(index)
    folder = results.folder / "figures"
    folder.mkdir(parents=True, exist_ok=True)
    for name in FIGURES:
        drawn = figure(name)(results)
        drawn.savefig(folder / f"{name}.svg", metadata={"Date": None})
        drawn.savefig(folder / f"{name}.png")
        plt.close(drawn)
