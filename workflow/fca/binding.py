"""In: a stage's name and arguments. Out: its recipe, its command, or its artifact.

What a stage takes is declared once, by the signature of its function in `fca.stages`. It is read
from the source text, so that planning and help need not import torch.
"""

import ast
import json
import shlex
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from fca.artifacts import parameters as marks
from fca.artifacts.code import code_digest, source
from fca.artifacts.external import MEMORY, Digests, files_below
from fca.artifacts.keys import Recipe
from fca.artifacts.store import Artifact, Store
from fca.errors import FcaError
from fca.inputs.corpus import files as corpus_files
from fca.networks.kinds import KINDS

#: in data-flow order
STAGES = (
    "inputs", "models", "imports", "coefficients", "profiles", "replay", "layers", "variance", "effects",
    "execution",
)  # fmt: skip
ROLES = {
    "Read": marks.READ,
    "External": marks.EXTERNAL,
    "Device": marks.RUNTIME,
    "Threads": marks.RUNTIME,
    "Count": marks.RUNTIME,
    "Resume": marks.RESUME,
}


@dataclass(frozen=True)
class Argument:
    """One argument of a stage. role: parameter, read, external, runtime or resume."""

    name: str
    role: str
    type: str  # as written: str, int, float, dict, Read, Read | None, tuple[Read, ...]
    default: Any
    required: bool

    @property
    def many(self) -> bool:
        return self.type.startswith("tuple")

    @property
    def option(self) -> str:
        return "--" + self.name.replace("_", "-")


@dataclass(frozen=True)
class Declaration:
    """A stage's arguments and what its docstrings say."""

    arguments: tuple[Argument, ...]
    summary: str
    description: str


@cache
def declaration(stage: str) -> Declaration:
    """What a stage's function takes and what it says of itself."""
    if stage not in STAGES:
        raise FcaError(f"unknown stage {stage!r}; known: {', '.join(STAGES)}")
    tree = ast.parse(source(f"fca.stages.{stage}").read_text(encoding="utf-8"))
    function = next(n for n in tree.body if isinstance(n, ast.FunctionDef) and n.name == stage)
    arguments = []
    for node, default in zip(function.args.kwonlyargs, function.args.kw_defaults, strict=True):
        written = ast.unparse(node.annotation) if node.annotation else "str"
        role = next((role for mark, role in ROLES.items() if mark in written), "parameter")
        value = ast.literal_eval(default) if default is not None else None
        optional = default is not None or "None" in written
        arguments.append(Argument(node.arg, role, written, value, not optional))
    summary = (ast.get_docstring(tree) or "").splitlines()[0]
    return Declaration(tuple(arguments), summary, ast.get_docstring(function) or "")


def recipe(stage: str, arguments: Mapping[str, Any], digests: Digests) -> Recipe:
    """The recipe of a stage's artifact. arguments: reads as `stage/key`, everything else plain.

    Raises FcaError for arguments that are missing or unknown.
    """
    declared = {a.name: a for a in declaration(stage).arguments}
    unknown = arguments.keys() - declared.keys()
    missing = {n for n, a in declared.items() if a.required and a.role != marks.RESUME} - arguments.keys()
    if unknown or missing:
        raise FcaError(
            f"stage {stage}: missing {sorted(missing) or 'nothing'}, unknown {sorted(unknown) or 'nothing'}"
        )
    parts: dict[str, dict] = {marks.READ: {}, marks.EXTERNAL: {}, "parameter": {}}
    for name, argument in declared.items():
        value = arguments.get(name, argument.default)
        if argument.role == marks.EXTERNAL:
            parts[argument.role][name] = external_digest(name, str(value), arguments, digests)
        elif argument.role in parts:
            parts[argument.role][name] = tuple(value) if argument.many else value
    kind = arguments.get("kind")
    roots = [f"fca.stages.{stage}"] + ([KINDS[kind]] if kind in KINDS else [])
    return Recipe(stage, parts["parameter"], parts[marks.READ], parts[marks.EXTERNAL], code_digest(*roots))


def external_digest(name: str, value: str, arguments: Mapping[str, Any], digests: Digests) -> str:
    """Digest of what lies outside the store: a corpus' files, a folder, or a name at a hub.

    What is not on this machine is what it was when the store last saw it.
    """
    try:
        found = external_files(name, value, arguments)
    except FcaError:
        if remembered := digests.remembered(value):
            return remembered
        raise
    if found:
        return digests.of_source(value, found)
    return digests.remembered(value) or f"name {value}"


def external_files(name: str, value: str, arguments: Mapping[str, Any]) -> list[tuple[str, Path]]:
    """The files behind an external argument; none for a name at a hub."""
    if "corpus" in arguments and name == "source" and (found := corpus_files(arguments["corpus"], value)):
        return found
    if arguments.get("kind") == "python" and name == "source":
        return [module_file(value)]
    path = Path(value)
    return files_below(path) if path.exists() else []


def memory_of(store: Store) -> Digests:
    """What a store, and those below it, remember of files outside."""
    return Digests(*(root / MEMORY for root in store.layers))


def module_file(factory: str) -> tuple[str, Path]:
    """The file of a user's `package.module:function`, found without importing torch."""
    name = factory.partition(":")[0]
    if str(Path.cwd()) not in sys.path:
        sys.path.insert(0, str(Path.cwd()))
    try:
        found = find_spec(name)
    except ModuleNotFoundError:
        found = None
    if found is None or found.origin is None:
        raise FcaError(f"models.factory: no module {name!r}; it is looked for here and in the environment")
    return name, Path(found.origin)


def options(stage: str, arguments: Mapping[str, Any]) -> str:
    """The arguments as options of `fca STAGE`, ready for a shell."""
    words = []
    for argument in declaration(stage).arguments:
        value = arguments.get(argument.name)
        if value is None:
            continue
        for one in value if argument.many else [value]:
            text = json.dumps(one, sort_keys=True) if isinstance(one, dict | list) else str(one)
            words += [argument.option, shlex.quote(text)]
    return " ".join(words)


def make(stage: str, arguments: Mapping[str, Any], store: Store, expected: str | None) -> Artifact | None:
    """Run a stage and publish its artifact, or find it there. expected: the key that was planned.

    Where several processes run a stage together, the artifact is the main one's, None the others'.
    """
    digests = memory_of(store)
    own = recipe(stage, arguments, digests)
    digests.save()
    if expected and expected != own.key:
        raise FcaError(
            f"{stage} was planned as {expected}, but these arguments, files and code give "
            f"{own.key}; something changed since the plan was made, run snakemake again"
        )
    values = dict(arguments)
    for argument in declaration(stage).arguments:
        if argument.role == marks.READ:
            value = values.get(argument.name)
            names = list(value or ()) if argument.many else [value]
            folders = tuple(folder_of(store, argument.option, name) for name in names)
            values[argument.name] = folders if argument.many else folders[0]
        elif argument.role == marks.RESUME:
            values[argument.name] = store.resume_folder(own)
    if digests.absent and not store.has(stage, own.key):
        raise FcaError(
            f"{', '.join(sorted(digests.absent))} is not on this machine: the artifacts made from it are "
            f"found in the store, but {stage}/{own.key} is not among them and cannot be made"
        )

    def fill(folder: Path) -> None:
        getattr(import_module(f"fca.stages.{stage}"), stage)(folder, **values)

    if values.get("processes", 1) > 1:
        return make_together(own, fill, store, values["processes"], values.get("device", "cpu"))
    return store.publish(own, fill)


def make_together(
    own: Recipe, fill: Callable[[Path], None], store: Store, processes: int, device: str
) -> Artifact | None:
    """Publish what several processes make: the main one writes, the others compute along.

    The main process alone looks whether the artifact is there, since another run may publish it
    between two looks, and a process that is left alone waits for the others in vain.
    """
    from fca.networks.processes import agreed, join

    group = join(processes, device)
    if not agreed(store.has(own.stage, own.key)):
        if group.is_main_process:
            store.publish(own, fill)
        else:
            fill(store.path(own.stage, own.key))  # writes nothing
    group.destroy_process_group()
    return Artifact(store.path(own.stage, own.key)) if group.is_main_process else None


def folder_of(store: Store, option: str, name: str | None) -> Path | None:
    """The folder of an upstream artifact given as `stage/key`."""
    if name is None:
        return None
    stage, _, key = name.partition("/")
    if not store.has(stage, key):
        raise FcaError(
            f"{option}: no artifact {name!r} in {', '.join(map(str, store.layers))}; see `fca store list`"
        )
    return store.path(stage, key)
