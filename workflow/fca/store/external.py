"""In: files from outside the store. Out: a digest of their content, remembered.

A file is hashed once; its digest is kept with its path, size and modification time, so planning
an audit on a large corpus or checkpoint stays well under a second.
"""

import hashlib
import importlib.util
import json
import os
import sys
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from importlib.machinery import PathFinder
from pathlib import Path

from fca.errors import FcaError

DIGESTS = ".digests.json"  # in a store's root


@dataclass(frozen=True)
class Stamp:
    """A file as it was: its content's digest, and what tells cheaply that it may have changed."""

    bytes: int
    modified: int  # nanoseconds
    sha256: str

    @classmethod
    def of(cls, path: Path) -> "Stamp":
        stat = path.stat()
        return cls(stat.st_size, stat.st_mtime_ns, sha256_of(path))

    def untouched(self, path: Path) -> bool:
        stat = path.stat()
        return (stat.st_size, stat.st_mtime_ns) == (self.bytes, self.modified)

    def matches(self, path: Path) -> bool:
        """Whether the file has this content; it is read only where size or time differ."""
        return self.untouched(path) or sha256_of(path) == self.sha256


class Digests:
    """sha256 of files, kept in a small JSON file between runs.

    files: by path. sources: digests of files and folders by the name that a config has for them,
    so that a store that was copied to another machine, where they are not, still knows what they
    were.
    """

    def __init__(self, file: Path, *others: Path):
        """file: where digests are kept. others: those of other stores, asked for sources only."""
        self.file = file
        self.files, self.sources = read_digests(file)
        self.others = [read_digests(other)[1] for other in others]
        self.absent: set[str] = set()  # names of which only the digest was known
        self.changed = False

    def of_source(self, name: str, files: Iterable[tuple[str, Path]]) -> str:
        """As `of_files`, kept under a name."""
        digest = self.of_files(files)
        if self.sources.get(name) != digest:
            self.sources[name] = digest
            self.changed = True
        return digest

    def known(self, name: str) -> str | None:
        """What lay at a name that leads to no file here; enough to find artifacts, not to make them."""
        found = next((known[name] for known in (self.sources, *self.others) if name in known), None)
        if found:
            self.absent.add(name)
        return found

    def of_file(self, path: Path) -> str:
        path = path.resolve()
        stamp = self.files.get(str(path))
        if stamp is None or not stamp.untouched(path):
            stamp = self.files[str(path)] = Stamp.of(path)
            self.changed = True
        return stamp.sha256

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
        files, sources = read_digests(self.file)
        self.files, self.sources = {**files, **self.files}, {**sources, **self.sources}
        kept = {"files": {path: asdict(s) for path, s in self.files.items()}, "sources": self.sources}
        try:
            self.file.parent.mkdir(parents=True, exist_ok=True)
            beside = self.file.with_name(f".{self.file.name}.{os.getpid()}")
            beside.write_text(json.dumps(kept))
            beside.replace(self.file)
        except OSError:
            return  # somebody else's store, mounted read-only: hash again next time
        self.changed = False


def read_digests(file: Path) -> tuple[dict[str, Stamp], dict[str, str]]:
    """Files and sources; a lost or damaged file costs time, never correctness."""
    try:
        found = json.loads(file.read_text())
        files = {path: Stamp(**stamp) for path, stamp in found["files"].items()}
        return files, dict(found["sources"])
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return {}, {}


def sha256_of(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


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


def files_at(name: str) -> list[tuple[str, Path]]:
    """The files of a path; none for a name that leads to no file here."""
    path = Path(name)
    return files_below(path) if path.exists() else []


def module_file(factory: str) -> tuple[str, Path]:
    """The file of a user's `package.module:function`, found without importing it or what it lies in."""
    name = factory.partition(":")[0]
    look_here()
    places: list[str] | None = None  # sys.path, then the package's folders
    found = None
    for part in name.split("."):
        found = PathFinder.find_spec(part, places)
        if found is None:
            break
        places = list(found.submodule_search_locations or [])
    if found is None or found.origin is None:
        raise FcaError(f"models.factory: no module {name!r}; it is looked for here and in the environment")
    return name, Path(found.origin)


def look_here() -> None:
    """Let modules be found in the folder that the run was started in, after those of the environment."""
    if str(Path.cwd()) not in sys.path:
        sys.path.append(str(Path.cwd()))
