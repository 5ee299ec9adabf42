"""In: the command line. Out: an artifact, an output, or one clear message and status 1."""

import os
import signal
import sys
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from fca.cli.stage import stage_command
from fca.cli.store import store_app
from fca.errors import FcaError
from fca.planning.declaration import STAGES

Index = Annotated[Path, typer.Option(help="results/<analysis>/index.json")]


class Commands(TyperGroup):
    """The commands below, and one for each stage, made when it is asked for."""

    def list_commands(self, ctx: Any) -> list[str]:
        return [*STAGES, *super().list_commands(ctx)]

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        return stage_command(cmd_name) if cmd_name in STAGES else super().get_command(ctx, cmd_name)


app = typer.Typer(
    cls=Commands,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    help="Frozen-controller auditing: do coefficients vary, are they needed, is less executed?",
)
app.add_typer(store_app, name="store")


@app.command()
def plan(
    configfile: Annotated[list[Path] | None, typer.Option(help="As for snakemake; over config.yaml.")] = None,
    cores: Annotated[int, typer.Option(help="As for snakemake.")] = os.cpu_count() or 1,
    gpu: Annotated[str | None, typer.Option(help="Also say GPU-hours: v100, a100, l40s, h100, h200.")] = None,
    measure: Annotated[bool, typer.Option(help="Measure this machine for some seconds.")] = True,
) -> None:
    """Print what an audit will take before it runs: jobs, operations, bytes, memory, time."""
    from fca.forecast.page import print_forecast
    from fca.planning.config import check, load
    from fca.planning.plan import Plan

    config = load(Path("config.yaml"), *(configfile or []))
    check(config)
    print_forecast(Plan(config), cores, gpu, measure)


@app.command()
def tables(plan: Annotated[Path, typer.Option(help="results/<analysis>/plan.json")]) -> None:
    """Write tables/*.csv, claims.json and index.json beside an analysis' plan."""
    from fca.report.tables import write_tables

    write_tables(plan)


@app.command()
def figures(index: Index) -> None:
    """Draw figures/*.svg and *.png beside an analysis' index."""
    from fca.figures.draw import draw_figures

    draw_figures(index)


@app.command()
def report(index: Index) -> None:
    """Write report.html, one self-contained page, beside an analysis' index."""
    from fca.report.page import write_report

    write_report(index)


@app.command()
def summary(index: Index) -> None:
    """Print where the report is and the three answers for every model."""
    from fca.report.summary import print_summary

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
    from fca.results.sample_size import print_power

    print_power(index, width, intervention)


@app.command()
def sites(
    model: Annotated[str, typer.Argument(help="folder, Hugging Face name, or package.module:function")],
    trust_remote_code: Annotated[bool, typer.Option(help="Run code that comes with the model.")] = False,
) -> None:
    """List the controllers that are found in a model: path, layer, channels, kind, what is known."""
    from fca.cli.sites import print_sites

    print_sites(model, trust_remote_code)


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
