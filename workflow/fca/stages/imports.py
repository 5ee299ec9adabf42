"""In: a model from outside. Out: an artifact that names it, its content and its sites.

Writes import.json (kind, source, local, sites, options). The weights stay where they are; their content
is part of the key, so a changed checkpoint is another model.
"""

import json
from pathlib import Path

from fca.artifacts.parameters import External
from fca.errors import FcaError


def imports(into: Path, *, kind: str, source: External, sites: dict, options: dict) -> None:
    """Take note of a checkpoint, a Hugging Face model or a factory `package.module:function`.

    sites: which controllers to audit, {"family": "auto"}, a family's name, or {"pattern": ...}.
    """
    if kind not in ("huggingface", "python") and not Path(source).is_dir():
        raise FcaError(f"models.checkpoint: no folder {source!r}")
    local = Path(source).exists()  # else a name at a hub, or a factory
    facts = {"kind": kind, "source": source, "local": local, "sites": sites, "options": options}
    (into / "import.json").write_text(json.dumps(facts, indent=1) + "\n")
