"""In: a model from outside. Out: an artifact that names it, its content and its sites.

Writes import.json (kind, source, sites, options; for files, their path and digest). The weights
stay where they are; their content is part of the key and compared with it when they are loaded.
"""

import json
from pathlib import Path

from fca.artifacts.external import MEMORY, Digests, files_below
from fca.artifacts.parameters import External
from fca.errors import FcaError


def imports(into: Path, *, kind: str, source: External, sites: dict, options: dict) -> None:
    """Take note of a checkpoint, a Hugging Face model or a factory `package.module:function`.

    sites: which controllers to audit, {"family": "auto"}, a family's name, or {"pattern": ...}.
    """
    path = Path(source)
    if kind not in ("huggingface", "python") and not path.is_dir():
        raise FcaError(f"models.checkpoint: no folder {source!r}")
    facts = {"kind": kind, "source": source, "sites": sites, "options": options}
    if path.exists():  # else a name at a hub, or a factory
        digests = Digests(into.parents[1] / MEMORY)
        facts |= {"path": str(path.resolve()), "digest": digests.of_files(files_below(path))}
    (into / "import.json").write_text(json.dumps(facts, indent=1) + "\n")
