"""Names of the figures, in the order of the report, and the module of this room that draws each.

A figure is a function of that name in that module.
"""

FIGURES = {
    "retention": "effects",
    "function": "effects",
    "penalties": "effects",
    "factors": "effects",
    "layers": "layers",
    "views": "views",
    "divergence": "effects",
    "variance": "coefficients",
    "coefficients": "coefficients",
    "execution": "execution",
    "training": "training",
}
