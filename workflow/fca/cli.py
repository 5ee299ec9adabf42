"""In: the command line. Out: an artifact, an output, or one clear message and status 1.

Every stage is a command; its options are read from the stage function's signature, so that
`fca variance` never imports torch.
"""

import json
import os
import signal
import sys
from inspect import Parameter, Signature
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from fca.artifacts.parameters import RESUME
from fca.artifacts.store import Store
from fca.binding import STAGES, Argument, declaration, make
from fca.errors import FcaError

STORE = Path("results/store")
StoreOption = Annotated[Path, typer.Option("--store", help="Folder of the artifacts.")]
Stores = Annotated[
    list[Path], typer.Option("--store", help="Folder of the artifacts; more of them are read only.")
]
Index = Annotated[Path, typer.Option(help="results/<analysis>/index.json")]


class Commands(TyperGroup):
    """The commands below, and one for each stage, made when it is asked for."""

    def list_commands(self, ctx: Any) -> list[str]:
        return [*STAGES, *super().list_commands(ctx)]

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        return stage_command(cmd_name) if cmd_name in STAGES else super().get_command(ctx, cmd_name)


def stage_command(stage: str) -> Any:
    """A command whose options are the stage's arguments."""
    declared = declaration(stage)
    arguments = [a for a in declared.arguments if a.role != RESUME]

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
    plain = argument.type.removesuffix(" | None")
    known: dict[str, Any] = {"float": float} | dict.fromkeys(("int", "Threads", "Count"), int)
    kind: Any = list[str] if argument.many else known.get(plain, str)
    metavar = {"read": "STAGE/KEY", "external": "PATH|NAME"}.get(argument.role)
    text = {"read": "Artifact in the store.", "runtime": "How to run; not part of the key."}
    option = typer.Option(
        argument.option,
        metavar=metavar or ("JSON" if plain == "dict" else None),
        help=text.get(argument.role, ""),
    )
    default = Parameter.empty if argument.required else argument.default
    annotation = kind if argument.required or argument.default is not None else kind | None
    return Parameter(
        argument.name, Parameter.KEYWORD_ONLY, default=default, annotation=Annotated[annotation, option]
    )


def value_of(argument: Argument, value: Any) -> Any:
    if argument.type.startswith("dict") and value is not None:
        try:
            return json.loads(value)
        except ValueError as error:
            raise FcaError(f"{argument.option}: not JSON ({error})") from None
    if argument.name == "device" and value == "auto":
        from fca.networks.device import best

        return best()
    return value


app = typer.Typer(
    cls=Commands,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    help="Frozen-controller auditing: do coefficients vary, are they needed, is less executed?",
)
store_app = typer.Typer(no_args_is_help=True, help="See, check and clean a store of artifacts.")
app.add_typer(store_app, name="store")


@app.command()
def plan(
    configfile: Annotated[list[Path] | None, typer.Option(help="As for snakemake; over config.yaml.")] = None,
    cores: Annotated[int, typer.Option(help="As for snakemake.")] = os.cpu_count() or 1,
    gpu: Annotated[str | None, typer.Option(help="Also say GPU-hours: v100, a100, l40s, h100, h200.")] = None,
    measure: Annotated[bool, typer.Option(help="Measure this machine for some seconds.")] = True,
) -> None:
    """Print what an audit will take before it runs: jobs, operations, bytes, memory, time."""
    from fca.config import SCHEMA, check, load
    from fca.forecast.page import print_forecast
    from fca.plan import Plan

    config = load(Path("config.yaml"), *(configfile or []))
    check(config, SCHEMA)
    print_forecast(Plan(config), cores, gpu, measure)


@app.command()
def tables(plan: Annotated[Path, typer.Option(help="results/<analysis>/plan.json")]) -> None:
    """Write tables/*.csv, claims.json and index.json beside an analysis' plan."""
    from fca.output.tables import write_tables

    write_tables(plan)


@app.command()
def figures(index: Index) -> None:
    """Draw figures/*.svg and *.png beside an analysis' index."""
    from fca.output.figures import draw_figures

    draw_figures(index)


@app.command()
def report(index: Index) -> None:
    """Write report.html, one self-contained page, beside an analysis' index."""
    from fca.output.report import write_report

    write_report(index)


@app.command()
def summary(index: Index) -> None:
    """Print where the report is and the three answers for every model."""
    from fca.output.report import print_summary

    print_summary(index)


@app.command()
def power(
    index: Index,
    width: Annotated[
        float | None, typer.Option(help="Of the retention interval, 0.05 is 5 points; 1 - static_enough.")
    ] = None,
    intervention: Annotated[str, typer.Option(help="The intervention whose retention it is.")] = "layer_mean",
) -> None:
    """Print how many inputs a retention interval of some width needs, with the spread at hand."""
    from fca.output.power import print_power

    print_power(index, width, intervention)


@app.command()
def sites(
    model: Annotated[str, typer.Argument(help="folder, Hugging Face name, or package.module:function")],
    trust_remote_code: Annotated[bool, typer.Option(help="Run code that comes with the model.")] = False,
) -> None:
    """List the controllers that are found in a model: path, layer, channels, kind, what is known."""
    from fca.networks.listing import print_sites

    print_sites(model, trust_remote_code)


@store_app.command("list")
def store_list(store: StoreOption = STORE) -> None:
    """One line per artifact: stage/key, size, seconds, when made."""
    for artifact in Store(store).artifacts():
        manifest = artifact.manifest()
        size = f"{artifact.size() / 1e6:.1f} MB"
        print(f"{artifact.name:36} {size:>10} {manifest['seconds']:>9.1f} s  {manifest['made']}")


@store_app.command("show")
def store_show(name: str, store: StoreOption = STORE) -> None:
    """Print the manifest of an artifact, named by its key or the beginning of it."""
    print(json.dumps(Store(store).find(name).manifest(), indent=1))


@store_app.command("verify")
def store_verify(store: StoreOption = STORE) -> None:
    """Check every file of every artifact against its manifest; status 1 on any difference."""
    found, damaged = 0, 0
    for artifact in Store(store).artifacts():
        found += 1
        for difference in artifact.damage():
            damaged += 1
            print(f"{artifact.name}: {difference}")
    print(f"{found} artifacts, {damaged} differences")
    if damaged:
        raise typer.Exit(1)


@store_app.command("gc")
def store_gc(
    keep: Annotated[list[Path], typer.Argument(help="index.json of every analysis to keep")],
    store: Stores = (STORE,),  # type: ignore[assignment]
    yes: Annotated[bool, typer.Option("--yes", help="Really remove; otherwise only list.")] = False,
) -> None:
    """Remove artifacts that no index names, and what killed runs left behind."""
    from fca.artifacts.clean import remove, unreferenced

    doomed = unreferenced(Store(*store), keep)
    for path in doomed:
        print(f"{'removed' if yes else 'would remove'} {path}")
    if yes:
        remove(doomed)
    print(f"{len(doomed)} folders" + ("" if yes else "; repeat with --yes to remove them"))


def main() -> None:
    """Entry point: errors that a person can act on are one line, without a traceback."""
    # what is cancelled ends as an exception does, so that no half-filled folder stays
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    try:
        app()
    except FcaError as error:
        print(f"fca: {error}", file=sys.stderr)
        sys.exit(1)
    except KeyboardInterrupt:
        sys.exit(130)
    except BrokenPipeError:
        os._exit(0)  # the reader of our output left, as `head` does
