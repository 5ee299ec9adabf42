"""In: a stage's name and arguments, a store. Out: its artifact, made or found there."""

from collections.abc import Callable, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

from fca.errors import FcaError
from fca.planning.declaration import Argument, declaration
from fca.planning.recipe import digests_of, recipe
from fca.stages.arguments import OnDevice, Reads, Resumes, Together
from fca.store.artifacts import Store
from fca.store.keys import Recipe
from fca.store.manifest import Artifact


def make(stage: str, arguments: Mapping[str, Any], store: Store, expected: str | None) -> Artifact | None:
    """Run a stage and publish its artifact, or find it there. expected: the key that was planned.

    Where several processes run a stage together, the artifact is the main one's, None the others'.
    """
    digests = digests_of(store)
    own = recipe(stage, arguments, digests)
    digests.save()
    if expected and expected != own.key:
        raise FcaError(
            f"{stage} was planned as {expected}, but these arguments, files and code give "
            f"{own.key}; something changed since the plan was made, run snakemake again"
        )
    declared = declaration(stage)
    values = dict(arguments)
    for argument in declared.marked(Reads):
        values[argument.name] = folders_of(store, argument, values.get(argument.name))
    for argument in declared.marked(Resumes):
        values[argument.name] = store.resume_folder(own)
    if digests.absent and not store.has(stage, own.key):
        raise FcaError(
            f"{', '.join(sorted(digests.absent))} is not on this machine: the artifacts made from it are "
            f"found in the store, but {stage}/{own.key} is not among them and cannot be made"
        )

    def fill(folder: Path) -> None:
        getattr(import_module(f"fca.stages.{stage}"), stage)(folder, **values)

    processes = max((values.get(a.name, a.default) for a in declared.marked(Together)), default=1)
    if processes > 1:
        device = next(values.get(a.name, a.default) for a in declared.marked(OnDevice))
        return make_together(own, fill, store, processes, device)
    return store.publish(own, fill)


def make_together(
    own: Recipe, fill: Callable[[Path], None], store: Store, processes: int, device: str
) -> Artifact | None:
    """Publish what several processes make: the main one writes, the others compute along.

    The main process alone looks whether the artifact is there, since another run may publish it
    between two looks, and a process that is left alone waits for the others in vain.
    """
    from fca.machine.processes import agreed, join

    group = join(processes, device)
    if not agreed(store.has(own.stage, own.key)):
        if group.is_main_process:
            store.publish(own, fill)
        else:
            fill(store.path(own.stage, own.key))  # writes nothing
    group.destroy_process_group()
    return Artifact(store.path(own.stage, own.key)) if group.is_main_process else None


def folders_of(store: Store, argument: Argument, value: Any) -> Any:
    """The folder of every upstream artifact that an argument names as `stage/key`."""
    if argument.many:
        return tuple(folder_of(store, argument, name) for name in value or ())
    return None if value is None else folder_of(store, argument, value)


def folder_of(store: Store, argument: Argument, name: str) -> Path:
    stage, _, key = name.partition("/")
    if stage not in argument.mark.stages:
        made_by = " or ".join(argument.mark.stages)
        raise FcaError(f"{argument.option}: {name!r} is not an artifact of the stage {made_by}")
    if not store.has(stage, key):
        raise FcaError(
            f"{argument.option}: no artifact {name!r} in {', '.join(map(str, store.roots))}; see "
            "`fca store list`"
        )
    return store.path(stage, key)
