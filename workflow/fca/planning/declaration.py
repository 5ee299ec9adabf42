"""In: a stage's name. Out: what it takes, as its function declares, and what it says of itself.

A stage's signature is the one place where its arguments are declared. It is read from the source
and its annotations are evaluated with the names of `fca.stages.arguments`, so that planning and help
need not import torch.
"""

import ast
from dataclasses import dataclass
from functools import cache
from types import NoneType
from typing import Annotated, Any, get_args, get_origin

from fca.errors import FcaError
from fca.stages import arguments as types
from fca.store.code import source

#: in data-flow order
STAGES = (
    "inputs", "models", "imports", "coefficients", "profiles", "replay", "layers", "variance", "effects",
    "execution",
)  # fmt: skip


@dataclass(frozen=True)
class Argument:
    """One argument of a stage.

    type: str, int, float, dict or Path. mark: what else it is, see `fca.stages.arguments`; None for a
    plain parameter. many: takes several. required: has neither a default nor may be left out.
    """

    name: str
    type: type
    mark: Any
    many: bool
    default: Any
    required: bool

    @property
    def option(self) -> str:
        return "--" + self.name.replace("_", "-")


@dataclass(frozen=True)
class Declaration:
    """A stage's arguments and what its docstrings say."""

    arguments: tuple[Argument, ...]
    summary: str
    description: str

    def marked(self, mark: type) -> list[Argument]:
        """The arguments with a kind of mark."""
        return [argument for argument in self.arguments if isinstance(argument.mark, mark)]


@cache
def declaration(stage: str) -> Declaration:
    """What a stage's function takes and what it says of itself."""
    if stage not in STAGES:
        raise FcaError(f"unknown stage {stage!r}; known: {', '.join(STAGES)}")
    tree = ast.parse(source(f"fca.stages.{stage}").read_text(encoding="utf-8"))
    function = next(n for n in tree.body if isinstance(n, ast.FunctionDef) and n.name == stage)
    declared = zip(function.args.kwonlyargs, function.args.kw_defaults, strict=True)
    summary = (ast.get_docstring(tree) or "").splitlines()[0]
    return Declaration(
        tuple(argument(node, default) for node, default in declared),
        summary,
        ast.get_docstring(function) or "",
    )


def argument(node: ast.arg, default: ast.expr | None) -> Argument:
    """One argument from its place in a signature."""
    assert node.annotation is not None, f"{node.arg} is declared without a type"
    declared = eval(ast.unparse(node.annotation), dict(vars(types)))
    optional = NoneType in get_args(declared)
    if optional:
        declared = next(choice for choice in get_args(declared) if choice is not NoneType)
    many = get_origin(declared) is tuple
    if many:
        declared = get_args(declared)[0]
    mark = None
    if get_origin(declared) is Annotated:
        declared, mark = get_args(declared)
    value = ast.literal_eval(default) if default is not None else None
    return Argument(node.arg, declared, mark, many, value, default is None and not optional)
