"""In: a model from outside. Out: an artifact that names it, its content and its sites.

Writes import.json (kind, source, sites, options and, for files, their path and digests). The weights
stay where they are; their content is part of the key and compared with it when they are loaded.
"""

from pathlib import Path

from fca.errors import FcaError
from fca.models.imported import Imported
from fca.models.kinds import HUGGINGFACE, PYTHON
from fca.stages.arguments import Checkpoint, Kind


def imports(into: Path, *, kind: Kind, source: Checkpoint, sites: dict, options: dict) -> None:
    """Take note of a checkpoint, a Hugging Face model or a factory `package.module:function`.

    sites: which controllers to audit, {"family": "auto"}, a family's name, or {"pattern": ...}.
    """
    if kind not in (HUGGINGFACE, PYTHON) and not Path(source).is_dir():
        raise FcaError(f"models.checkpoint: no folder {source!r}")
    Imported.note(kind, source, sites, options).write(into)
