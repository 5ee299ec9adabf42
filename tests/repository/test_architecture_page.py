"""docs/architecture.md is enough: what it says to add is added to a copy, as it stands there, and works."""

import ast
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "architecture.md").read_text()
BLOCK = re.compile(r"```python\n# (\S+), (a new file|in (\w+)|above (\w+))\n(.*?)```", re.S)
#: what is added, and how many files the page may ask to touch for it
THINGS = ("a model", "a family", "an intervention", "a statistic", "a figure")


def sections() -> dict[str, str]:
    parts = re.split(r"^### \.\.\. ", PAGE, flags=re.M)[1:]
    return {next(thing for thing in THINGS if part.startswith(thing)): part for part in parts}


def assignment(source: str, name: str) -> ast.stmt:
    """The statement at the top of a file that gives a name its value."""
    for node in ast.parse(source).body:
        targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
        if any(isinstance(target, ast.Name) and target.id == name for target in targets):
            return node
    raise AssertionError(f"no {name}")


def add(folder: Path, block: re.Match) -> None:
    """Do to a copy what a block of the page says."""
    file, how, inside, above, text = block.groups()
    path = folder / file
    if how == "a new file":
        assert not path.exists()
        path.write_text(text)
        return
    source = path.read_text()
    lines = source.splitlines(keepends=True)
    node = assignment(source, inside or above)
    if above:
        place = node.lineno - 1
        while lines[place - 1].startswith("#"):
            place -= 1
        lines.insert(place, text + "\n\n")
    else:
        imports = [line for line in text.splitlines() if line.startswith(("from ", "import "))]
        entries = [line for line in text.splitlines() if line and line not in imports]
        lines.insert(node.end_lineno - 1, "".join(f"    {entry},\n" for entry in entries))
        if imports:
            found = [n for n in ast.parse(source).body if isinstance(n, ast.Import | ast.ImportFrom)]
            lines.insert(found[-1].end_lineno, "".join(f"{line}\n" for line in imports))
    path.write_text("".join(lines))


@pytest.fixture(scope="module")
def extended(tmp_path_factory) -> Path:
    """A copy of the project with everything added."""
    folder = tmp_path_factory.mktemp("extended")
    for name in ("workflow", "rules", "analyses", "profiles", "envs", "docs"):
        shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("Snakefile", "config.yaml"):
        shutil.copy(ROOT / name, folder)
    for block in BLOCK.finditer(PAGE):
        add(folder, block)
    return folder


def run(folder: Path, *command: str) -> str:
    environment = os.environ | {
        "PYTHONPATH": str(folder / "workflow"),
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
    }
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_each_takes_two_files_at_most():
    found = {thing: {m.group(1) for m in BLOCK.finditer(part)} for thing, part in sections().items()}
    assert set(found) == set(THINGS)
    assert all(1 <= len(files) <= 2 for files in found.values())
    assert PAGE.count("```python") == len(BLOCK.findall(PAGE))


def test_an_audit_runs_with_all_of_it(extended):
    overlay = {
        "analysis": "extended",
        "models": [{"name": "plain", "kind": "plaingate"}],
        "interventions": ["token_shift", "global_mean"],
        "layers": {"interventions": []},
    }
    (extended / "overlay.json").write_text(json.dumps(overlay))
    files = ("--configfile", "analyses/smoke.yaml", "overlay.json")
    run(extended, "snakemake", "--cores", "2", "all", *files)
    tables = extended / "results" / "extended" / "tables"
    effects = pd.read_csv(tables / "effects.csv").set_index("intervention")
    assert effects.loc["token_shift", "repeats"] == 2
    worse = pd.read_csv(tables / "worse.csv").set_index("intervention")["worse"]
    assert worse["correct"] == 0
    assert 0 <= worse["token_shift"] <= 1
    assert (extended / "results/extended/figures/worse.svg").stat().st_size > 2000
    assert "Documents made worse" in (extended / "results/extended/report.html").read_text()


def test_the_family_is_found_in_a_model(extended):
    (extended / "highway.py").write_text(
        "from torch import nn\n\n\n"
        "class Highway(nn.Module):\n"
        "    def __init__(self):\n"
        "        super().__init__()\n"
        "        self.transform = nn.Sequential(nn.Linear(8, 1), nn.Sigmoid())\n"
        "        self.plain = nn.Linear(8, 8)\n\n"
        "    def forward(self, h):\n"
        "        g = self.transform(h)\n"
        "        return g * self.plain(h) + (1 - g) * h\n\n\n"
        "class Block(nn.Module):\n"
        "    def __init__(self):\n"
        "        super().__init__()\n"
        "        self.highway = Highway()\n\n"
        "    def forward(self, h):\n"
        "        return self.highway(h)\n\n\n"
        "class Model(nn.Module):\n"
        "    def __init__(self):\n"
        "        super().__init__()\n"
        "        self.embedding = nn.Embedding(20, 8)\n"
        "        self.layers = nn.ModuleList(Block() for _ in range(2))\n"
        "        self.out = nn.Linear(8, 20)\n\n"
        "    def forward(self, tokens):\n"
        "        h = self.embedding(tokens)\n"
        "        for layer in self.layers:\n"
        "            h = layer(h)\n"
        "        return self.out(h)\n"
    )
    shown = run(extended, "fca", "sites", "highway:Model")
    assert "highway: 2 sites; nothing is skipped" in shown
    assert "layers.1.highway.transform" in shown


def test_rooms_stay_small_and_in_order(extended):
    """The rules of the house still hold, but for the picture, which is drawn anew."""
    run(extended, sys.executable, "docs/draw_architecture.py")
    tests = extended / "tests" / "repository"
    tests.mkdir(parents=True)
    shutil.copy(ROOT / "tests/repository/test_structure.py", tests)
    shutil.copy(ROOT / "pyproject.toml", extended)
    run(extended, sys.executable, "-m", "pytest", "-q", "-m", "not slow", str(tests))
