"""In: a stage's declaration. Out: a command whose options are the stage's arguments.

Options are made from what the stage's signature declares, so that `fca variance` never imports torch.
"""

import json
from inspect import Parameter, Signature
from pathlib import Path
from typing import Annotated, Any

import typer

from fca.errors import FcaError
from fca.planning.declaration import Argument, declaration
from fca.planning.make import make
from fca.stages.arguments import External, OnDevice, Reads, Resumes, Runtime
from fca.store.artifacts import Store
from fca.store.manifest import MANIFEST

STORE = Path("results/store")
Stores = Annotated[
    list[Path], typer.Option("--store", help="Folder of the artifacts; more of them are read only.")
]


def stage_command(stage: str) -> Any:
    """A command whose options are the stage's arguments."""
    declared = declaration(stage)
    arguments = [a for a in declared.arguments if not isinstance(a.mark, Resumes)]

    def run(store: list[Path], key: str | None, **given: Any) -> None:
        values = {a.name: value_of(a, given[a.name]) for a in arguments}
        if made := make(stage, values, Store(*store), key):
            print(made.path)

    planned = typer.Option(help="The key that was planned; refuse to run under another.")
    parameters = [
        Parameter("store", Parameter.KEYWORD_ONLY, default=[STORE], annotation=Stores),
        Parameter("key", Parameter.KEYWORD_ONLY, default=None, annotation=Annotated[str | None, planned]),
        *map(parameter_of, arguments),
    ]
    run.__signature__ = Signature(parameters)  # type: ignore[attr-defined]
    run.__annotations__ = {p.name: p.annotation for p in parameters}
    alone = typer.Typer(add_completion=False)
    alone.command(stage, help=f"{declared.summary}\n\n{declared.description}")(run)
    return typer.main.get_command(alone)


def parameter_of(argument: Argument) -> Parameter:
    """An argument as an option of the command line."""
    metavar, text = None, ""
    match argument.mark:
        case Reads():
            metavar, text = "STAGE/KEY|MANIFEST", "Artifact in the store."
        case External():
            metavar = "PATH|NAME"
        case Runtime():
            text = "How to run; not part of the key."
    if argument.type is dict:
        metavar = "JSON"
    option = typer.Option(argument.option, metavar=metavar, help=text)
    kind: Any = argument.type if argument.type in (int, float) else str
    if argument.many:
        kind = list[str]
    optional = not argument.required and argument.default is None
    return Parameter(
        argument.name,
        Parameter.KEYWORD_ONLY,
        default=Parameter.empty if argument.required else argument.default,
        annotation=Annotated[kind | None if optional else kind, option],
    )


def value_of(argument: Argument, given: Any) -> Any:
    """What a stage gets for what was written on the command line."""
    if given is None:
        return None
    if isinstance(argument.mark, Reads):
        return [artifact_name(one) for one in given] if argument.many else artifact_name(given)
    if isinstance(argument.mark, OnDevice) and given == "auto":
        from fca.machine.device import best

        return best()
    if argument.type is dict:
        try:
            return json.loads(given)
        except ValueError as error:
            raise FcaError(f"{argument.option}: not JSON ({error})") from None
    return given


def artifact_name(given: str) -> str:
    """`stage/key` of an artifact that is given so, or by the path of its manifest."""
    path = Path(given)
    return f"{path.parts[-3]}/{path.parts[-2]}" if path.name == MANIFEST and len(path.parts) > 2 else given
