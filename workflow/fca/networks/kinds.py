"""In: the name of a kind of model. Out: the module that builds or loads it.

Trained kinds have `build(architecture)` and `sites(model)`; imported ones `load(source, dtype,
options)`, and their sites are selected. They are imported by name, so that editing one kind
changes the keys of its own models only.
"""

from importlib import import_module
from types import ModuleType

from fca.errors import FcaError

#: kinds that can be trained here -> module
TRAINED: dict[str, str] = {
    "dense": "fca.networks.dense",
    "rezero": "fca.networks.rezero",
    "featuregate": "fca.networks.featuregate",
    "mudd": "fca.networks.mudd",
    "mixture_of_depths": "fca.networks.mixture_of_depths",
    "early_exit": "fca.networks.early_exit",
    "moe": "fca.networks.moe",
}
#: kinds that are only imported -> module
IMPORTED: dict[str, str] = {
    "huggingface": "fca.networks.huggingface",
    "python": "fca.networks.python",
}
KINDS = TRAINED | IMPORTED
#: kinds without a controller, and what there is to say of them
STATIC = {
    "dense": "no controller, nothing to audit",
    "rezero": "static parameters, the same for every input: nothing to audit",
}
#: kinds in which a parameter may take no part in a step, such as an expert without a token
SKIPPING = ("mixture_of_depths", "early_exit", "moe")


def module(kind: str) -> ModuleType:
    """The module of a kind. Raises FcaError naming the known ones."""
    if kind not in KINDS:
        raise FcaError(f"unknown kind of model {kind!r}; known: {', '.join(KINDS)}")
    return import_module(KINDS[kind])
