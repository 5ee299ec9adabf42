"""Training curves: loss by tokens seen, smoothed."""

import matplotlib.pyplot as plt
from matplotlib.figure import Figure

from fca.output.results import Results
from fca.output.style import colour_of

CAPTION = (
    "Training loss in nats per token against tokens seen, averaged over 10 steps. Same data, batches "
    "and budget for all models of a seed."
)


def draw(results: Results) -> Figure:
    figure, axes = plt.subplots(figsize=(7.5, 3.6))
    colours = colour_of(list(results.families))
    for name, models in results.families.items():
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
