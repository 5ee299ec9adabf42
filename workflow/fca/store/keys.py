"""In: what determines an artifact's content. Out: its key.

A key covers the stage's parameters, the keys of the artifacts it reads, the content of the
external files it reads and the code it reaches. The same work has the same key everywhere.
"""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

KEY_LENGTH = 20  # hex digits: 80 bits, collisions are out of reach for any store

Reads = str | tuple[str, ...]


@dataclass(frozen=True)
class Recipe:
    """Everything that determines an artifact's content.

    parameters: the stage's own. reads: upstream artifacts as `stage/key`. external: digests of
    files from outside the store. code: digest of the modules the stage reaches.
    """

    stage: str
    parameters: Mapping[str, Any]
    reads: Mapping[str, Reads] = field(default_factory=dict)
    external: Mapping[str, str] = field(default_factory=dict)
    code: str = ""

    @property
    def key(self) -> str:
        return digest(asdict(self))


def canonical(value: Any) -> str:
    """JSON with sorted keys and no spaces: one text per value."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def digest(value: Any) -> str:
    """Short sha256 of a JSON-like value."""
    return hashlib.sha256(canonical(value).encode()).hexdigest()[:KEY_LENGTH]
