"""How far the replayed predictions are from the live ones: Kullback-Leibler divergence."""

from matplotlib.figure import Figure

from fca.output.plots.dots import panels
from fca.output.results import Results

CAPTION = (
    "Divergence KL(live || replayed) of the next-token distributions, nats, averaged over positions and "
    "inputs. Two models can have equal loss and differ in function; then the penalty is near 0 and "
    "this is not. Total variation and top-1 agreement are in the table. Each panel has its own scale."
)


def draw(results: Results) -> Figure:
    table = results.table("effects", "divergence")
    if "kl" not in table:  # nothing was compared
        table = table.iloc[:0]
    names = [n for n in dict.fromkeys(table.get("intervention", [])) if n != "correct"]
    return panels(table, "kl", names, 1.0, "KL divergence, nats")
