"""In: names of modules of this package. Out: a digest of all code they reach inside it.

Sources are parsed and normalised, so comments, docstrings and formatting do not count. Nothing
is imported: the digest of a stage that needs torch is computed without torch.
"""

import ast
import hashlib
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]  # the package's folder
PACKAGE = ROOT.name


@cache
def code_digest(*modules: str) -> str:
    """sha256 over the normalised sources reached from modules such as `fca.stages.replay`.

    Read once per process: a job runs the code that it started with.
    """
    reached: set[str] = set()
    waiting = list(modules)
    while waiting:
        name = waiting.pop()
        if name not in reached:
            reached.add(name)
            waiting.extend(imports(name))
    lines = [f"{name} {normalised(name)}" for name in sorted(reached)]
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()


def source(module: str) -> Path:
    """A module's file. Raises ModuleNotFoundError for names outside the package."""
    base = ROOT.joinpath(*module.split(".")[1:])
    for candidate in (base.with_suffix(".py"), base / "__init__.py"):
        if module.split(".")[0] == PACKAGE and candidate.is_file():
            return candidate
    raise ModuleNotFoundError(module)


def exists(module: str) -> bool:
    try:
        source(module)
    except ModuleNotFoundError:
        return False
    return True


def parse(text: str) -> tuple[str, frozenset[str]]:
    """The normalised digest of a source text and the names of this package that it imports."""
    tree = ast.parse(text)
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
        elif isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            first = node.body[0] if node.body else None
            value = getattr(first, "value", None) if isinstance(first, ast.Expr) else None
            if isinstance(value, ast.Constant) and isinstance(value.value, str):
                node.body = node.body[1:]  # the docstring
    normal = ast.dump(tree, annotate_fields=False, include_attributes=False)
    mine = frozenset(name for name in found if name.split(".")[0] == PACKAGE)
    return hashlib.sha256(normal.encode()).hexdigest(), mine


@cache
def _parsed(module: str) -> tuple[str, frozenset[str]]:
    return parse(source(module).read_text(encoding="utf-8"))


def normalised(module: str) -> str:
    """sha256 of a module's code without comments, docstrings and formatting."""
    return _parsed(module)[0]


def imports(module: str) -> list[str]:
    """Modules of this package that a module imports, inside functions too."""
    return sorted(name for name in _parsed(module)[1] if exists(name) and name != PACKAGE)
