"""In: where text is. Out: its documents, one after the other.

stdlib: source files of the running Python's standard library (no download). text: files by
glob. lines: files by glob, one document a line. jsonl: one JSON object a line, .gz and .zst too.
huggingface: a data set by name or path.
"""

import glob
import json
import sysconfig
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

import fsspec

from fca.errors import FcaError
from fca.store.external import files_at

CORPORA = ("stdlib", "text", "lines", "jsonl", "huggingface")
# ASSUME: tests, vendored packages and generated tables are left out of the default corpus; they
# repeat themselves and would make documents depend on one another.
STDLIB_LEAVES_OUT = {"test", "tests", "idle_test", "site-packages", "__pycache__", "encodings"}


@dataclass(frozen=True)
class Document:
    """A text and a name that says where it came from."""

    name: str
    text: str


def files(source: str, corpus: str) -> list[tuple[str, Path]]:
    """The files that a corpus consists of, with names that do not depend on where they lie.

    Empty for a hub's data set. Raises FcaError where a path or glob leads to no file.
    """
    if corpus == "stdlib":
        root = Path(sysconfig.get_path("stdlib"))
        found = [p for p in root.rglob("*.py") if not STDLIB_LEAVES_OUT & {*p.relative_to(root).parts}]
        return sorted((str(p.relative_to(root)), p) for p in found)
    if corpus == "huggingface":
        return files_at(source)
    if corpus not in CORPORA:
        raise FcaError(f"inputs.corpus: {corpus!r} is not known; known: {', '.join(CORPORA)}")
    found = [Path(p) for p in sorted(glob.glob(source, recursive=True)) if Path(p).is_file()]
    if not found:
        raise FcaError(f"inputs.source: no file matches {source!r} (seen from {Path.cwd().name}/)")
    root = Path(*[part for part in _fixed_parts(source)])
    return [(str(p.relative_to(root)) if p != root else p.name, p) for p in found]


def _fixed_parts(pattern: str) -> list[str]:
    """The leading path components of a glob that hold no wildcard, without the last one."""
    parts = Path(pattern).parts
    fixed = [i for i, part in enumerate(parts) if glob.has_magic(part)]
    return list(parts[: fixed[0] if fixed else len(parts) - 1])


def documents(corpus: str, source: str, field: str = "text") -> Iterator[Document]:
    """The documents of a corpus. field: the key of the text in JSONL and Hugging Face rows."""
    if corpus == "huggingface":
        yield from _huggingface(source, field)
        return
    for name, path in files(source, corpus):
        if corpus == "jsonl":
            yield from _jsonl(name, path, field)
        elif corpus == "lines":
            for number, line in _lines(path):
                yield Document(f"{name}:{number}", line.rstrip("\n"))
        else:
            # Undecodable bytes are replaced: one odd file must not stop an audit.
            yield Document(name, path.read_text(encoding="utf-8", errors="replace"))


def _jsonl(name: str, path: Path, field: str) -> Iterator[Document]:
    for number, line in _lines(path):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except ValueError as error:
            raise FcaError(f"{path}:{number}: not JSON ({error})") from None
        if not isinstance(row, dict) or not isinstance(row.get(field), str):
            keys = ", ".join(row) if isinstance(row, dict) else type(row).__name__
            raise FcaError(f"{path}:{number}: no text in field {field!r}; it has {keys}")
        yield Document(f"{name}:{number}", row[field])


def _lines(path: Path) -> Iterator[tuple[int, str]]:
    """Numbered lines of a text file. Raises FcaError for bytes that are no UTF-8."""
    with _open_text(path) as lines:
        number = 0
        try:
            for number, line in enumerate(lines, start=1):
                yield number, line
        except UnicodeDecodeError as error:
            raise FcaError(f"{path}: not UTF-8 text after line {number} ({error.reason})") from None


def _open_text(path: Path) -> fsspec.core.OpenFile:
    """Opened as text, whatever compression the ending of its name stands for."""
    if path.suffix == ".zst" and find_spec("zstandard") is None:
        raise FcaError(f"{path}: reading .zst needs the package zstandard (extra `hf`)")
    return fsspec.open(str(path), "rt", encoding="utf-8", compression="infer")


def _huggingface(source: str, field: str) -> Iterator[Document]:
    """`name`, `name:split` or `name/config:split` of a hub, or a local folder; split train."""
    try:
        import datasets
    except ImportError:
        raise FcaError("inputs.corpus huggingface needs the package datasets (extra `hf`)") from None
    name, _, split = source.partition(":")
    try:
        rows = datasets.load_dataset(name, split=split or "train")
    except Exception as error:  # the library raises many kinds; the message is what helps
        raise FcaError(f"inputs.source: cannot load the data set {source!r}: {error}") from None
    if field not in rows.column_names:
        raise FcaError(
            f"inputs.field: {source!r} has no column {field!r}; it has {', '.join(rows.column_names)}"
        )
    for number, row in enumerate(rows):
        yield Document(f"{source}:{number}", row[field])
