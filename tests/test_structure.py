"""The layers import one way, analysis needs no torch, and the tools find nothing to complain of."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "workflow" / "fca"
# Each layer may import from itself and from those above it.
LAYERS = [
    ("arithmetic",),
    ("artifacts", "progress"),
    ("inputs", "networks"),
    ("stages", "api"),
    ("output",),
    ("binding", "config", "plan", "index", "forecast", "cli", "__main__", "__init__"),
]
FREE = {"errors"}
LEVEL = {name: level for level, names in enumerate(LAYERS) for name in names}
WITHOUT_TORCH = ["inputs", "profiles", "variance", "effects"]


def modules():
    return sorted(PACKAGE.rglob("*.py"))


def imported(path: Path) -> set[str]:
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found |= {node.module, *(f"{node.module}.{a.name}" for a in node.names)}
    return found


def part(name: str) -> str:
    return name.split(".")[1]


@pytest.mark.parametrize("path", modules(), ids=lambda p: str(p.relative_to(PACKAGE)))
def test_layers_import_one_way(path):
    own = path.relative_to(PACKAGE).parts[0].removesuffix(".py")
    if own in FREE or own == "__init__":
        return
    for name in imported(path):
        if name.startswith("fca.") and part(name) not in FREE:
            assert LEVEL[part(name)] <= LEVEL[own], f"{own} imports {name}"
        top = name.split(".")[0]
        if own in ("arithmetic", "artifacts", "inputs"):
            assert top not in ("torch", "snakemake"), f"{own} imports {name}"
        if own == "networks":
            assert top not in ("xarray", "zarr", "snakemake"), f"networks imports {name}"


@pytest.mark.parametrize("stage", WITHOUT_TORCH)
def test_analysis_stages_never_import_torch(stage):
    imports = f"import fca.stages.{stage}, fca.plan, fca.cli, fca.output.report, sys"
    code = f"{imports}; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0


def test_modules_are_small_and_say_what_they_do():
    for path in modules():
        text = path.read_text()
        assert len(text.splitlines()) <= 250, path
        if path.name != "__main__.py" and text.strip():
            assert ast.get_docstring(ast.parse(text)), path


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
