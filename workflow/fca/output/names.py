"""Names of the figures, in the order of the report; each is a module of `fca.output.plots`."""

FIGURES = (
    "retention", "function", "penalties", "factors", "layers", "views", "divergence", "variance",
    "coefficients", "execution", "training",
)  # fmt: skip
