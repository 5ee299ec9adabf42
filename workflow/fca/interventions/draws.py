"""In: an intervention's name, labels, a seed. Out: its assignment."""

import re
from collections.abc import Callable
from functools import partial

import numpy as np

from fca.errors import FcaError
from fca.interventions.assignments import Assignment, Indices, Labels
from fca.interventions.lattice import after
from fca.interventions.reassignments import REASSIGNMENTS, token_shuffle


def draw(name: str, labels: Labels, seed: int) -> Assignment:
    """The assignment of a reassignment such as `cross_input+token_shuffle`, from a seed.

    A part's draw depends on the seed and its own name only, so `cross_input` has the same donors
    alone and in every combination. Raises FcaError for unknown names and for two on one axis.
    """
    merged: dict[str, Indices] = {}
    for part in name.split("+"):
        draw_part = drawing(part)
        if draw_part is None:
            known = ", ".join([*REASSIGNMENTS, after("token_shuffle", 4)])
            raise FcaError(f"unknown intervention {part!r}; known: {known}")
        stream = [seed, *part.encode()]
        drawn = draw_part(labels, np.random.default_rng(stream))
        for axis in ("donors", "tokens", "coefficients"):
            indices = getattr(drawn, axis)
            if indices is not None and axis in merged:
                raise FcaError(f"intervention {name!r} rearranges the same axis twice")
            if indices is not None:
                merged[axis] = indices
    return Assignment(**merged)


def drawing(part: str) -> Callable[[Labels, np.random.Generator], Assignment] | None:
    """How a reassignment without `+` is drawn; None for names that are no reassignment."""
    if sinks := re.fullmatch(r"token_shuffle_after_([1-9]\d*)", part):
        return partial(token_shuffle, keep_first=int(sinks.group(1)))
    return REASSIGNMENTS.get(part)


def is_random(name: str) -> bool:
    """Whether an intervention is drawn at random, so that repeating it makes sense."""
    return any(drawing(part) is not None and part != "correct" for part in name.split("+"))
