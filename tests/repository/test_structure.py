"""Rooms import one way, are small and say what they do; the picture is true; the tools are content."""

import ast
import subprocess
import sys
from graphlib import TopologicalSorter
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
spec = spec_from_file_location("draw_architecture", ROOT / "docs" / "draw_architecture.py")
architecture = module_from_spec(spec)
spec.loader.exec_module(architecture)
PACKAGE, ROOMS = architecture.PACKAGE, list(architecture.ROOMS)

#: rooms that never import torch: analysis and planning run without it
WITHOUT_TORCH = (
    "interventions",
    "statistics",
    "store",
    "inputs",
    "recordings",
    "results",
    "figures",
    "report",
)
#: what only some rooms know
ONLY = {
    "xarray": ("recordings", "frozen", "stages", "notebook"),
    "zarr": ("recordings",),
    "snakemake": ("planning",),
}


def name_of(path: Path) -> str:
    parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
    return ".".join(parts).removesuffix(".__init__")


@pytest.mark.parametrize("path", architecture.modules(), ids=lambda p: str(p.relative_to(PACKAGE)))
def test_rooms_import_one_way(path):
    own = architecture.room_of(path)
    if own in architecture.ENTRANCES:
        return
    assert own in ROOMS or own in architecture.FREE, f"{own} is no room; see docs/draw_architecture.py"
    for name in architecture.imported(path):
        top, *rest = name.split(".")
        if top == "fca" and rest and rest[0] not in architecture.FREE:
            assert own in ROOMS, f"{own} imports {name}"
            assert ROOMS.index(rest[0]) <= ROOMS.index(own), f"{own} imports {name}"
        if own in WITHOUT_TORCH:
            assert top != "torch", f"{own} imports {name}"
        if top in ONLY:
            assert own in ONLY[top], f"{own} imports {name}"


def test_no_file_imports_itself_through_others():
    files = {name_of(path): path for path in architecture.modules()}
    graph = {name: architecture.imported(path) & files.keys() for name, path in files.items()}
    list(TopologicalSorter(graph).static_order())  # raises CycleError, which names the files


def test_rooms_are_small():
    total = sum(architecture.lines_of(room)[1] for room in ROOMS)
    for room in ROOMS:
        files, lines = architecture.lines_of(room)
        assert files <= 12, room
        assert lines <= 0.15 * total, f"{room}: {lines / total:.1%}"


@pytest.mark.parametrize("path", architecture.modules(), ids=lambda p: str(p.relative_to(PACKAGE)))
def test_files_are_small_and_say_what_they_do(path):
    text = path.read_text()
    if text.strip():
        first = (ast.get_docstring(ast.parse(text)) or "").splitlines()[:1]
        assert first, "no docstring"
        assert len(text.splitlines()) <= 200 or "Long:" in first[0], "over 200 lines without a reason"


def test_the_picture_is_of_these_imports():
    assert architecture.PICTURE.read_text() == architecture.draw(), "run python docs/draw_architecture.py"


@pytest.mark.slow
@pytest.mark.parametrize("stage", ["inputs", "profiles", "variance", "effects"])
def test_analysis_stages_never_import_torch(stage):
    imports = (
        f"import fca.stages.{stage}, fca.planning.plan, fca.forecast.jobs, fca.cli.app, fca.report.page, sys"
    )
    code = f"{imports}; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0


@pytest.mark.slow
@pytest.mark.parametrize(
    "command",
    [
        ["ruff", "check", "."],
        ["ruff", "format", "--check", "."],
        ["snakefmt", "--check", "Snakefile", "rules"],
        ["mypy"],
        ["snakemake", "--lint"],
    ],
    ids=lambda c: " ".join(c[:2]),
)
def test_tools_are_content(command):
    binary = str(Path(sys.executable).parent / command[0])
    done = subprocess.run([binary, *command[1:]], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
