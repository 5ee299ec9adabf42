"""Names of the figures, in the order of the report; each is a module of `fca.output.plots`."""

FIGURES = ("retention", "penalties", "variance", "coefficients", "execution", "training")
