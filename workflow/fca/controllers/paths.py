"""In: dotted paths and patterns. Out: modules, or an error that names what there is."""

import difflib
import re
from collections.abc import Sequence
from fnmatch import fnmatchcase

from torch import nn

from fca.errors import FcaError


def submodule(model: nn.Module, path: str) -> nn.Module:
    """The module at a dotted path; an error that names what exists near it."""
    try:
        return model.get_submodule(path)
    except AttributeError:
        raise FcaError(f"no module {path!r} in {type(model).__name__}; {nearest(model, path)}") from None


def nearest(model: nn.Module, pattern: str) -> str:
    """A hint: the model's module paths, numbers as *, closest to a pattern first."""
    shapes = list(dict.fromkeys(re.sub(r"\b\d+\b", "*", n) for n, _ in model.named_modules() if n))
    close = difflib.get_close_matches(re.sub(r"\b\d+\b", "*", pattern), shapes, n=3, cutoff=0.5)
    listed = close or shapes[:12]
    return ("did you mean " if close else "it has ") + ", ".join(map(repr, listed))


def layers_of(paths: Sequence[str]) -> list[int]:
    """The layer of each of a family's paths: the number in `model.layers.3.mlp.gate`.

    Where paths differ in more than one number or name, as in `layer2.0.se.gate` or in an encoder
    and a decoder, layers are counted in network order. Paths below one numbered module share it.
    """
    modules = [numbered(path) for path in paths]
    stems = {module.rpartition(".")[0] for module in modules}
    if all(modules) and len(stems) == 1 and not any(part.isdigit() for part in stems.pop().split(".")):
        return [int(module.rpartition(".")[2]) for module in modules]
    places = [module or path for module, path in zip(modules, paths)]
    order = {place: layer for layer, place in enumerate(dict.fromkeys(places))}
    return [order[place] for place in places]


def numbered(path: str) -> str:
    """The beginning of a path up to its last number, empty where it has none."""
    parts = path.split(".")
    last = max((i for i, part in enumerate(parts) if part.isdigit()), default=-1)
    return ".".join(parts[: last + 1])


def matching(model: nn.Module, pattern: str) -> list[str]:
    """Paths that match a pattern such as `blocks.*.gate`, part by part: * stays within a part.

    Raises FcaError where nothing matches, naming what exists.
    """
    wanted = pattern.split(".")
    paths = [
        name
        for name, _ in model.named_modules()
        if len(parts := name.split(".")) == len(wanted)
        and all(fnmatchcase(part, want) for part, want in zip(parts, wanted))
    ]
    if not paths:
        raise FcaError(
            f"pattern {pattern!r} matches no module of {type(model).__name__}; {nearest(model, pattern)}"
        )
    return paths
