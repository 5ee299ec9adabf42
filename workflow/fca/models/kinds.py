"""In: the name of a kind of model. Out: what is known of it, and the module that builds or loads it.

The module of a trained kind has `build(architecture)` and `sites(model)`; that of an imported one
`load(source, dtype, options)`, and its sites are chosen. It is imported by name, so that planning
needs no torch, and editing one kind changes the keys of its own models only.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

from fca.errors import FcaError
from fca.store.external import files_at, module_file

HUGGINGFACE, PYTHON = "huggingface", "python"


@dataclass(frozen=True)
class Kind:
    """One kind of model.

    module: where it is built or loaded. sizes: the function of `fca.models.sizes` that counts its
    parameters and operations. options: the kind's own keys in the config, each a JSON schema.
    required: those that must be there. static: for kinds without a controller, what there is to say
    of them. skips: a parameter may take no part in a training step, such as an expert without a token.
    """

    module: str
    sizes: str = "dense"
    options: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    required: tuple[str, ...] = ()
    static: str = ""
    skips: bool = False


def option(type_: str, description: str, **limits: Any) -> dict[str, Any]:
    return {"type": type_, "description": description, **limits}


SHARE = {"exclusiveMinimum": 0, "maximum": 1}

#: kinds that can be trained here
TRAINED: dict[str, Kind] = {
    "dense": Kind("fca.architectures.dense", static="no controller, nothing to audit"),
    "rezero": Kind(
        "fca.architectures.rezero",
        static="static parameters, the same for every input: nothing to audit",
    ),
    "featuregate": Kind(
        "fca.architectures.featuregate",
        sizes="featuregate",
        options={
            "features": option("string", "What the controller sees.", enum=["statistics", "residual"]),
            "gate_width": option("integer", "Hidden units of the controller.", minimum=1),
            "strength": option("number", "How far from 1 the coefficients can be.", **SHARE),
        },
    ),
    "mudd": Kind("fca.architectures.mudd", sizes="mudd"),
    "mixture_of_depths": Kind(
        "fca.architectures.mixture_of_depths",
        sizes="mixture_of_depths",
        options={"share": option("number", "Share of tokens that a routed block processes.", **SHARE)},
        skips=True,
    ),
    "early_exit": Kind(
        "fca.architectures.early_exit",
        sizes="early_exit",
        options={
            "depth": option("number", "Share of processed tokens that training aims at.", **SHARE),
            "cost": option("number", "Weight of that aim.", minimum=0),
        },
        skips=True,
    ),
    "moe": Kind(
        "fca.architectures.moe",
        sizes="moe",
        options={
            "experts": option("integer", "Experts per layer.", minimum=2),
            "k": option("integer", "Experts per token.", minimum=1),
            "expert_share": option(
                "number", "Width of one expert, share of the dense feed-forward's.", exclusiveMinimum=0
            ),
            "balance": option("number", "Weight of the load-balancing loss.", minimum=0),
        },
        skips=True,
    ),
}
#: kinds that are only imported
IMPORTED: dict[str, Kind] = {
    HUGGINGFACE: Kind(
        "fca.models.huggingface",
        options={
            "gguf_file": option("string", "File to read inside the checkpoint."),
            "trust_remote_code": option("boolean", "Run code that comes with the checkpoint."),
        },
        required=("checkpoint",),
    ),
    PYTHON: Kind(
        "fca.models.factory",
        options={
            "factory": option(
                "string", "package.module:function that returns a torch module.", pattern="^[\\w.]+:\\w+$"
            ),
        },
        required=("factory",),
    ),
}
KINDS = TRAINED | IMPORTED


def module(kind: str) -> ModuleType:
    """The module of a kind. Raises FcaError naming the known ones."""
    if kind not in KINDS:
        raise FcaError(f"unknown kind of model {kind!r}; known: {', '.join(KINDS)}")
    return import_module(KINDS[kind].module)


def module_name(kind: str) -> str | None:
    """The name of a kind's module, whose code is part of the key of what is made with it."""
    return KINDS[kind].module if kind in KINDS else None


def files(source: str, kind: str) -> list[tuple[str, Path]]:
    """The files that an imported model consists of; none for a name at a hub."""
    if kind == PYTHON:
        return [module_file(source)]
    return files_at(source)
