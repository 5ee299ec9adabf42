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

MEMORY = ".digests.json"  # in a store's root


class Digests:
    """sha256 of files, kept in a small JSON file between runs.

    known: by path, with size and modification time. sources: of files and folders by the name
    that a config has for them, so that a store that was copied to another machine, where they are
    not, still knows what they were.
    """

    def __init__(self, memory: Path, *others: Path):
        """others: memories of other stores, asked for sources only."""
        self.memory = memory
        own = read_memory(memory)
        self.known: dict[str, list] = own["files"]
        self.sources: dict[str, str] = own["sources"]
        self.others = [read_memory(other)["sources"] for other in others]
        self.absent: set[str] = set()  # names that were remembered
        self.changed = False

    def of_source(self, name: str, files: Iterable[tuple[str, Path]]) -> str:
        """As `of_files`, remembered under a name."""
        digest = self.of_files(files)
        if self.sources.get(name) != digest:
            self.sources[name] = digest
            self.changed = True
        return digest

    def remembered(self, name: str) -> str | None:
        """What lay at a name that leads to no file here; enough to find artifacts, not to make them."""
        found = next((known[name] for known in (self.sources, *self.others) if name in known), None)
        if found:
            self.absent.add(name)
        return found

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
        """Keep what was learnt, beside what others learnt meanwhile; written beside and renamed, so
        that readers never see half.
        """
        if not self.changed:
            return
        now = read_memory(self.memory)
        self.known, self.sources = {**now["files"], **self.known}, {**now["sources"], **self.sources}
        try:
            self.memory.parent.mkdir(parents=True, exist_ok=True)
            beside = self.memory.with_name(f".{self.memory.name}.{os.getpid()}")
            beside.write_text(json.dumps({"files": self.known, "sources": self.sources}))
            beside.replace(self.memory)
        except OSError:
            return  # somebody else's store, mounted read-only: hash again next time
        self.changed = False


def read_memory(memory: Path) -> dict[str, dict]:
    """A lost or damaged memory costs time, never correctness."""
    try:
        found = json.loads(memory.read_text())
        return {"files": dict(found["files"]), "sources": dict(found["sources"])}
    except (OSError, ValueError, KeyError, TypeError):
        return {"files": {}, "sources": {}}


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
