"""In: results. Out: the figures that have a dot and an interval per intervention or factor."""

from matplotlib.figure import Figure

from fca.figures.dots import panels
from fca.figures.draw import caption
from fca.results.results import Results


@caption(
    "Retention of every intervention: the share of the Correct-to-GlobalMean gap it keeps.",
    "Retention: the share of the gap between one constant everywhere (0 %) and the model's own "
    "coefficients (100 %, grey line) that each intervention keeps. One dot per training seed; bars "
    "are paired bootstrap intervals over documents. Undefined where the gap's interval contains 0.",
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
    "nats per predicted token. One dot per training seed; bars are paired bootstrap intervals over "
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
    "unless they are listed. One dot per training seed; bars are bootstrap intervals over documents.",
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
