"""In: a recipe and a function that fills a folder. Out: an artifact, whole or not at all.

An artifact is the folder <store>/<stage>/<key> with its data and a manifest.json that holds the
recipe and what was written (see `manifest`).
"""

import os
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from fca.errors import FcaError
from fca.store.keys import Recipe
from fca.store.manifest import MANIFEST, Artifact, write_manifest

WORKING = "."  # names that start with it are work in progress, never artifacts


class Store:
    """A folder of artifacts, shared by any number of analyses, users and runs at once.

    below: stores of others, in which artifacts are looked for too; nothing is ever written there.
    """

    def __init__(self, root: Path | str, *below: Path | str):
        self.root = Path(root)
        self.below = tuple(map(Path, below))

    @property
    def roots(self) -> tuple[Path, ...]:
        """The own store, then the others, in the order in which they are looked through."""
        return (self.root, *self.below)

    def path(self, stage: str, key: str) -> Path:
        """Where an artifact is, in whichever store; where it will be, if it is in none."""
        found = (root / stage / key for root in self.roots)
        return next((path for path in found if (path / MANIFEST).is_file()), self.root / stage / key)

    def has(self, stage: str, key: str) -> bool:
        return (self.path(stage, key) / MANIFEST).is_file()

    def find(self, name: str) -> Artifact:
        """The artifact of a `stage/key`, a key or the beginning of one. Raises FcaError."""
        found = [a for a in self.artifacts() if a.name == name or a.path.name.startswith(name)]
        if len(found) == 1:
            return found[0]
        listed = ", ".join(a.name for a in found[:5]) if found else "none; see `fca store list`"
        raise FcaError(f"{name!r} names {len(found)} artifacts in {self.root}: {listed}")

    def artifacts(self) -> Iterator[Artifact]:
        for manifest in sorted(self.root.glob(f"[!{WORKING}]*/[!{WORKING}]*/{MANIFEST}")):
            yield Artifact(manifest.parent)

    def unfinished(self) -> list[Path]:
        """Folders of runs that are still working or were killed."""
        return sorted(self.root.glob(f"*/{WORKING}*"))

    def resume_folder(self, recipe: Recipe) -> Path:
        """Where a stage keeps what it needs to go on after a kill; removed on publication."""
        return self.root / recipe.stage / f"{WORKING}{recipe.key}.resume"

    def publish(self, recipe: Recipe, fill: Callable[[Path], None]) -> Artifact:
        """Run fill(folder) and publish what it wrote; return at once if it is already there.

        fill gets an empty folder beside the target, which is renamed into place as the last act.
        When two runs make the same artifact at once, the first to finish is kept.
        """
        if self.has(recipe.stage, recipe.key):
            return Artifact(self.path(recipe.stage, recipe.key))
        target = self.root / recipe.stage / recipe.key
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            folder = Path(tempfile.mkdtemp(prefix=f"{WORKING}{recipe.key}.", dir=target.parent))
        except OSError as error:
            raise FcaError(f"cannot write to the store {self.root}: {error}") from None
        try:
            started = time.time()
            fill(folder)
            write_manifest(folder, recipe, started)
            give_umask_modes(folder)
            self._put(folder, target)
        finally:
            shutil.rmtree(folder, ignore_errors=True)
        shutil.rmtree(self.resume_folder(recipe), ignore_errors=True)
        return Artifact(target)

    @staticmethod
    def _put(folder: Path, target: Path) -> None:
        """Rename a finished folder into place, unless a whole artifact is there already.

        A workflow engine that is cancelled right after a publication deletes the manifest, its
        output; what is left is no artifact and is moved out of the way.
        """
        try:
            os.rename(folder, target)
        except OSError:
            if (target / MANIFEST).is_file():
                return
            target.rename(folder.with_name(f"{folder.name}.headless"))
            os.rename(folder, target)
            shutil.rmtree(folder.with_name(f"{folder.name}.headless"), ignore_errors=True)


def give_umask_modes(folder: Path) -> None:
    """Give files and folders the modes of the umask: mkdtemp's are readable by the owner only."""
    umask = os.umask(0)
    os.umask(umask)
    for path in (folder, *folder.rglob("*")):
        path.chmod((0o777 if path.is_dir() else 0o666) & ~umask)
