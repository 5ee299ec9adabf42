"""In: an artifact's folder. Out: its manifest, and what differs from it.

manifest.json holds the recipe, the sha256 of every file, library versions, the machine and the
time it took.
"""

import importlib.metadata
import json
import os
import platform
import time
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path

from fca.store.external import sha256_of
from fca.store.keys import Recipe

MANIFEST = "manifest.json"
LIBRARIES = ("fca", "numpy", "scipy", "pandas", "xarray", "zarr", "torch", "transformers")


@dataclass(frozen=True)
class Artifact:
    """A published artifact."""

    path: Path

    @property
    def name(self) -> str:
        return f"{self.path.parent.name}/{self.path.name}"

    def manifest(self) -> dict:
        return json.loads((self.path / MANIFEST).read_text())

    def size(self) -> int:
        """Bytes of its data files."""
        return sum(file["bytes"] for file in self.manifest()["files"].values())

    def damage(self) -> list[str]:
        """What differs from the manifest: files missing, changed or added."""
        promised = self.manifest()["files"]
        found = {str(f.relative_to(self.path)): f for f in data_files(self.path)}
        return (
            [f"{name}: missing" for name in promised if name not in found]
            + [f"{name}: not in the manifest" for name in found if name not in promised]
            + [
                f"{name}: changed"
                for name, file in found.items()
                if name in promised and sha256_of(file) != promised[name]["sha256"]
            ]
        )


def data_files(folder: Path) -> list[Path]:
    """An artifact's own files: not the manifest, nor what workflow engines drop into folders."""
    return [
        file
        for file in sorted(folder.rglob("*"))
        if file.is_file() and file.name not in (MANIFEST, ".snakemake_timestamp")
    ]


def write_manifest(folder: Path, recipe: Recipe, started: float) -> None:
    files = {
        str(file.relative_to(folder)): {"sha256": sha256_of(file), "bytes": file.stat().st_size}
        for file in data_files(folder)
    }
    manifest = {
        "key": recipe.key,
        "recipe": asdict(recipe),
        "files": files,
        "versions": {"python": platform.python_version(), **versions()},
        "machine": {
            "system": platform.platform(),
            "processor": processor(),
            "cores": os.cpu_count(),
        },
        "made": datetime.now(UTC).isoformat(timespec="seconds"),
        "seconds": round(time.time() - started, 3),
    }
    (folder / MANIFEST).write_text(json.dumps(manifest, indent=1) + "\n")


def versions() -> dict[str, str]:
    found = {}
    for library in LIBRARIES:
        try:
            found[library] = importlib.metadata.version(library)
        except importlib.metadata.PackageNotFoundError:
            continue
    return found


def processor() -> str:
    """The processor's model name, as far as the system tells it."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        lines = []
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine()
