"""Shapley shares of the gap: which factor of the coefficients carries the dependence."""

from matplotlib.figure import Figure

from fca.output.plots.dots import panels
from fca.output.results import Results

CAPTION = (
    "Each factor's Shapley share of the gap between one constant everywhere and the model's own "
    "coefficients: how much of it is recovered by keeping the factor, averaged over the orders in "
    "which factors are kept. Shares of a model add up to 100 %. Layer includes the channels within it "
    "unless they are listed. One dot per training seed; bars are bootstrap intervals over documents."
)


def draw(results: Results) -> Figure:
    table = results.table("effects", "factors")
    if not table.empty:
        table = table[table["what"] == "shapley"].rename(columns={"term": "intervention"})
    names = list(dict.fromkeys(table.get("intervention", [])))
    return panels(table, "share", names, 100.0, "share of the gap, %")
