"""In: a store and the indexes to keep. Out: folders that nothing refers to."""

import json
import shutil
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from fca.errors import FcaError
from fca.store.artifacts import Store
from fca.store.manifest import MANIFEST, Artifact

STILL_WORKING = 24 * 3600.0  # seconds; younger working folders may belong to a run
JUST_MADE = 3600.0  # seconds; a run that is going on names its artifacts in an index only at its end


def unreferenced(store: Store, indexes: Iterable[Path], spare: float = JUST_MADE) -> list[Path]:
    """Artifacts that no index needs, directly or upstream, and abandoned working folders.

    spare: younger artifacts, in seconds, are left out, since a run may be about to use them.
    """
    needed: set[str] = set()
    waiting: list[str] = []
    for index in indexes:
        try:
            named = names_in(json.loads(index.read_text())["models"])
        except (OSError, ValueError, KeyError) as error:
            raise FcaError(f"{index}: cannot be read as an index ({error}); nothing was removed") from None
        missing = [name for name in named if not store.has(*name.split("/"))]
        if missing:
            raise FcaError(
                f"{index}: {len(missing)} of the artifacts that it names, such as {missing[0]}, are not "
                f"in the store {store.root}; is it another store's? Nothing was removed"
            )
        waiting += named
    while waiting:
        name = waiting.pop()
        stage, _, key = name.partition("/")
        if name not in needed and store.has(stage, key):
            needed.add(name)
            waiting += names_in(Artifact(store.path(stage, key)).manifest()["recipe"]["reads"])
    loose = [a.path for a in store.artifacts() if a.name not in needed and age(a.path / MANIFEST) >= spare]
    return loose + [path for path in store.unfinished() if age(path) > STILL_WORKING]


def age(path: Path) -> float:
    """Seconds since a file or folder was last written."""
    return time.time() - path.stat().st_mtime


def names_in(value: Any) -> list[str]:
    """All `stage/key` texts in a nested structure."""
    if isinstance(value, str):
        return [value] if value.count("/") == 1 else []
    if isinstance(value, dict):
        return [name for inner in value.values() for name in names_in(inner)]
    if isinstance(value, list | tuple):
        return [name for inner in value for name in names_in(inner)]
    return []


def remove(folders: Iterable[Path]) -> None:
    """Rename out of sight first, so that no half-removed artifact can be found."""
    for folder in folders:
        hidden = folder.with_name(f".{folder.name.lstrip('.')}.removed")
        folder.rename(hidden)
        shutil.rmtree(hidden)
