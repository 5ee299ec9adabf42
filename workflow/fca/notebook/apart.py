"""In: a static profile, inputs. Out: an error where the profile was estimated on them."""

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from fca.errors import FcaError


def contents(inputs: np.ndarray) -> list[str]:
    """sha256 of every input, by which a record knows what it was made from."""
    return [hashlib.sha256(np.ascontiguousarray(one).tobytes()).hexdigest() for one in inputs]


def check_apart(facts: Mapping[str, Any], inputs: np.ndarray, documents: Sequence[int] | None) -> None:
    """Refuse a static profile on inputs, or documents, that it was estimated on."""
    estimated = facts.get("estimated_on", {})
    shared = set(contents(inputs)) & set(estimated.get("content", ()))
    what = "inputs"
    if not shared and documents is not None:
        shared, what = {*np.asarray(documents).tolist()} & {*estimated.get("document", ())}, "documents"
    if shared:
        raise FcaError(
            f"the static profile {facts['intervention']!r} was estimated on {len(shared)} of the {what} that "
            "it is to be replayed on, so it knows what it is judged by; estimate it on a record of others, "
            "fca.capture(model, sites, calibration), or call it an oracle: fca.static(..., oracle=True)"
        )
