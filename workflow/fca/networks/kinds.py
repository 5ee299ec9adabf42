"""In: the name of a kind of model. Out: the module that builds it.

Each kind is a module with `build(architecture) -> nn.Module` and `sites(model) -> list[Site]`.
They are imported by name, so that editing one kind changes the keys of its own models only.
"""

from importlib import import_module
from types import ModuleType

from fca.errors import FcaError

#: kind -> its module
KINDS: dict[str, str] = {
    "dense": "fca.networks.dense",
    "featuregate": "fca.networks.featuregate",
    "mudd": "fca.networks.mudd",
}
#: kind -> pattern of the modules that are its blocks
BLOCKS = {"dense": "blocks.*", "featuregate": "blocks.*", "mudd": "layers.*"}
#: kind -> pattern of what lies between its blocks and a layer map can reuse as well
BETWEEN = {"mudd": "connections.*"}
#: kinds without a controller: nothing to replay
STATIC = frozenset({"dense"})


def module(kind: str) -> ModuleType:
    if kind not in KINDS:
        raise FcaError(f"unknown kind of model {kind!r}; known: {', '.join(KINDS)}")
    return import_module(KINDS[kind])
