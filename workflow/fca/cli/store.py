"""In: a store. Out: on the terminal, what is in it, whether it is whole, what nothing needs."""

import json
from pathlib import Path
from typing import Annotated

import typer

from fca.cli.stage import STORE, Stores
from fca.store.artifacts import Store

StoreOption = Annotated[Path, typer.Option("--store", help="Folder of the artifacts.")]
store_app = typer.Typer(no_args_is_help=True, help="See, check and clean a store of artifacts.")


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
    spare_hours: Annotated[float, typer.Option(help="Leave younger artifacts to runs that go on.")] = 1.0,
    yes: Annotated[bool, typer.Option("--yes", help="Really remove; otherwise only list.")] = False,
) -> None:
    """Remove artifacts that no index names, and what killed runs left behind."""
    from fca.store.clean import remove, unreferenced

    doomed = unreferenced(Store(*store), keep, 3600 * spare_hours)
    for path in doomed:
        print(f"{'removed' if yes else 'would remove'} {path}")
    if yes:
        remove(doomed)
    print(f"{len(doomed)} folders" + ("" if yes else "; repeat with --yes to remove them"))
