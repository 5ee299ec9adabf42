"""In: files from outside the store. Out: a digest of their content, remembered.

A file is hashed once; its digest is remembered by path, size and modification time, so planning
an audit on a large corpus or checkpoint stays well under a second.
"""

import hashlib
import importlib.util
import json
import os
from collections.abc import Iterable
from pathlib import Path

from fca.errors import FcaError


class Digests:
    """sha256 of files, kept in a small JSON file between runs."""

    def __init__(self, memory: Path):
        self.memory = memory
        try:
            self.known: dict[str, list] = json.loads(memory.read_text())
        except (OSError, ValueError):
            self.known = {}  # a lost or damaged memory costs time, never correctness
        self.changed = False

    def of_file(self, path: Path) -> str:
        path = path.resolve()
        stat = path.stat()
        stamp = [stat.st_size, stat.st_mtime_ns]
        remembered = self.known.get(str(path))
        if remembered and remembered[:2] == stamp:
            return remembered[2]
        with path.open("rb") as file:
            sha256 = hashlib.file_digest(file, "sha256").hexdigest()
        self.known[str(path)] = [*stamp, sha256]
        self.changed = True
        return sha256

    def of_files(self, files: Iterable[tuple[str, Path]]) -> str:
        """One digest of (name, file) pairs, whatever folder they are in."""
        lines = sorted(f"{name}\0{self.of_file(path)}" for name, path in files)
        return hashlib.sha256("\n".join(lines).encode()).hexdigest()

    def save(self) -> None:
        """Keep what was learnt; written beside and renamed, so that readers never see half."""
        if not self.changed:
            return
        try:
            self.memory.parent.mkdir(parents=True, exist_ok=True)
            beside = self.memory.with_name(f".{self.memory.name}.{os.getpid()}")
            beside.write_text(json.dumps(self.known))
            beside.replace(self.memory)
        except OSError:
            return  # somebody else's store, mounted read-only: hash again next time
        self.changed = False


def located(source: str) -> str:
    """`package:NAME/REST` as the path of a file or folder inside an installed package.

    Everything else is returned as it is. Raises FcaError where the package is not installed.
    """
    if not source.startswith("package:"):
        return source
    name, _, rest = source.removeprefix("package:").partition("/")
    found = importlib.util.find_spec(name)
    if found is None or not found.submodule_search_locations:
        raise FcaError(f"{source!r}: the package {name!r} is not installed")
    return str(Path(found.submodule_search_locations[0]) / rest)


def files_below(path: Path) -> list[tuple[str, Path]]:
    """The files of a folder with their relative names, or a single file with its name."""
    if path.is_file():
        return [(path.name, path)]
    return [(str(file.relative_to(path)), file) for file in sorted(path.rglob("*")) if file.is_file()]
