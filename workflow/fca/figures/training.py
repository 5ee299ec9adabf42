"""In: results. Out: training curves."""

import matplotlib.pyplot as plt
from matplotlib.figure import Figure

from fca.figures.draw import caption
from fca.figures.style import colour_of
from fca.results.results import Results


@caption(
    "Training curves: loss by tokens seen, smoothed.",
    "Training loss in nats per token against tokens seen, averaged over 10 steps. Same data, batches "
    "and budget for all models of a seed.",
)
def training(results: Results) -> Figure:
    figure, axes = plt.subplots(figsize=(7.5, 3.6))
    colours = colour_of(list(results.groups))
    for name, models in results.groups.items():
        for turn, model in enumerate(models):
            if (model.artifacts["models"].path / "training.csv").is_file():
                curve = model.frame("models", "training.csv")
                smooth = curve["loss"].rolling(10, min_periods=1).mean()
                axes.plot(
                    curve["tokens"], smooth, color=colours[name], linewidth=1.2, label=None if turn else name
                )
    axes.set_xlabel("tokens seen")
    axes.set_ylabel("loss, nats per token")
    if axes.lines:
        axes.legend()
    return figure
