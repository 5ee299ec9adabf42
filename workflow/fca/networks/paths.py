"""In: dotted paths and patterns. Out: modules, or an error that names what there is."""

import difflib
import re
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


def layer_of(path: str, otherwise: int) -> int:
    """The first number in a dotted path: `blocks.3.gate` is at layer 3."""
    number = re.search(r"(?:^|\.)(\d+)(?:\.|$)", path)
    return int(number.group(1)) if number else otherwise


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
