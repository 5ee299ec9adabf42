"""Frozen-controller auditing: do a network's coefficients vary, are they needed, is less executed?

The names below are loaded when first used, so that importing the package needs no torch.
"""

from importlib import import_module
from typing import Any

_PUBLIC = {
    "fca.notebook.audit": ("capture", "replay", "divergence"),
    "fca.notebook.changes": (
        "reassign", "correct", "cross_input", "token_shuffle", "layer_shuffle", "static", "global_mean",
        "layer_mean",
    ),
    "fca.models.checkpoint": ("load_checkpoint",),
    "fca.controllers.sites": ("Output", "Site", "Slice", "find_sites"),
    "fca.recordings.reading": ("open_recording", "open_recordings"),
    "fca.errors": ("FcaError", "ProofError", "Undefined"),
}  # fmt: skip
_HOME = {name: module for module, names in _PUBLIC.items() for name in names}
__all__ = sorted(_HOME)


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'fca' has no attribute {name!r}")
    return getattr(import_module(_HOME[name]), name)


def __dir__() -> list[str]:
    return __all__
