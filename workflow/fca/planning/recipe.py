"""In: a stage's name and arguments. Out: its recipe, from which its key follows."""

from collections.abc import Mapping
from pkgutil import resolve_name
from typing import Any

from fca.errors import FcaError
from fca.planning.declaration import Argument, declaration
from fca.stages.arguments import External, NamesCode, Reads, Resumes, Runtime
from fca.store.artifacts import Store
from fca.store.code import code_digest
from fca.store.external import DIGESTS, Digests
from fca.store.keys import Recipe


def recipe(stage: str, arguments: Mapping[str, Any], digests: Digests) -> Recipe:
    """The recipe of a stage's artifact. arguments: what it reads as `stage/key`, everything else plain.

    Raises FcaError for arguments that are missing or unknown.
    """
    declared = {argument.name: argument for argument in declaration(stage).arguments}
    given = {name for name, a in declared.items() if not isinstance(a.mark, Resumes)}
    unknown = arguments.keys() - given
    missing = {name for name in given if declared[name].required} - arguments.keys()
    if unknown or missing:
        raise FcaError(
            f"stage {stage}: missing {sorted(missing) or 'nothing'}, unknown {sorted(unknown) or 'nothing'}"
        )
    parameters, reads, external, code = {}, {}, {}, [f"fca.stages.{stage}"]
    for name, argument in declared.items():
        value = arguments.get(name, argument.default)
        match argument.mark:
            case Runtime() | Resumes():
                continue
            case Reads():
                reads[name] = tuple(value or ()) if argument.many else value
            case External():
                external[name] = external_digest(argument, str(value), arguments, digests)
            case NamesCode(module):
                parameters[name] = value
                code += [found] if (found := resolve_name(module)(value)) else []
            case _:
                parameters[name] = value
    return Recipe(stage, parameters, reads, external, code_digest(*code))


def external_digest(argument: Argument, value: str, arguments: Mapping[str, Any], digests: Digests) -> str:
    """Digest of what lies outside the store: a corpus' files, a folder, or a name at a hub.

    What is not on this machine is what it was when the store last saw it.
    """
    mark = argument.mark
    try:
        files = resolve_name(mark.files)
        found = files(value, arguments[mark.of]) if mark.of else files(value)
    except FcaError:
        if known := digests.known(value):
            return known
        raise
    if found:
        return digests.of_source(value, found)
    return digests.known(value) or f"name {value}"


def digests_of(store: Store) -> Digests:
    """What a store, and those that are read beside it, know of files outside."""
    return Digests(*(root / DIGESTS for root in store.roots))
