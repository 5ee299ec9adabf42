"""In: a model from outside. Out: a note of what it was, and later the same model or an error.

The weights stay where they are. import.json names them, with every file's size, modification time
and sha256, so that what is loaded is compared with what was imported; a file is read for that only
where its size or time differ from the noted ones.
"""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from fca.errors import FcaError
from fca.store.external import Stamp, files_below

IMPORT = "import.json"  # in place of weights, in the artifact of an imported model


@dataclass(frozen=True)
class Imported:
    """kind: of model. source: a folder, a name at a hub, or a factory, as the config has it.

    sites: which controllers to audit. options: of loading. path: where the files were. files: name
    -> stamp of each of them; none for a name at a hub or a factory.
    """

    kind: str
    source: str
    sites: Mapping[str, Any]
    options: Mapping[str, Any]
    path: str = ""
    files: Mapping[str, Stamp] = field(default_factory=dict)

    @classmethod
    def note(cls, kind: str, source: str, sites: Mapping, options: Mapping) -> "Imported":
        """Take note of a model as it is now."""
        path = Path(source)
        if not path.exists():
            return cls(kind, source, sites, options)
        files = {name: Stamp.of(file) for name, file in files_below(path)}
        return cls(kind, source, sites, options, str(path.resolve()), files)

    @classmethod
    def read(cls, artifact: Path) -> "Imported":
        noted = json.loads((artifact / IMPORT).read_text())
        return cls(**noted | {"files": {name: Stamp(**stamp) for name, stamp in noted["files"].items()}})

    def write(self, artifact: Path) -> None:
        (artifact / IMPORT).write_text(json.dumps(asdict(self), indent=1) + "\n")

    def found(self) -> str:
        """Where the model is: where it was, or where the config's name leads on this machine.

        Raises FcaError where it is in neither place, or where what is there is not what was
        imported; never are files looked for at a hub instead.
        """
        if not self.files:
            return self.source
        existing = [path for path in (self.path, self.source) if Path(path).exists()]
        for path in existing:
            if self._same(Path(path)):
                return path
        what = "has changed since it was imported" if existing else "is not on this machine"
        raise FcaError(
            f"models.checkpoint: {self.source!r} {what}; what was recorded from it can be used, but no "
            "pass can be run"
        )

    def _same(self, path: Path) -> bool:
        here = dict(files_below(path))
        return here.keys() == self.files.keys() and all(
            stamp.matches(here[name]) for name, stamp in self.files.items()
        )
