"""In: the calibration mean [token, coefficient]. Out: static profiles of the same shape.

A profile keeps some factors of the coefficients and averages over all others; the kept ones name
it. Oracles also keep the input and are therefore means of the evaluation cache itself.
"""

import numpy as np
from numpy.typing import NDArray

from fca.errors import FcaError

#: name -> the factors kept; with several channels per layer, "layer" profiles keep those too
PROFILES: dict[str, frozenset[str]] = {
    "global_mean": frozenset(),
    "layer_mean": frozenset({"layer"}),
    "token_mean": frozenset({"token"}),
    "layer_token_mean": frozenset({"layer", "token"}),
}

ORACLES: dict[str, frozenset[str]] = {
    "input_mean": frozenset({"input"}),
    "input_layer_mean": frozenset({"input", "layer"}),
    "input_token_mean": frozenset({"input", "token"}),
}


def static(values: NDArray, kept: frozenset[str]) -> NDArray[np.float64]:
    """Mean over the factors not kept, broadcast back: [..., token, coefficient] in float64.

    The axes before the last two (inputs) are kept: callers pass means over inputs, or, for
    oracles, the inputs themselves.
    """
    over = tuple(axis for axis, factor in ((-2, "token"), (-1, "layer")) if factor not in kept)
    values = np.asarray(values, dtype=np.float64)
    if not over:
        return values
    return np.broadcast_to(values.mean(axis=over, keepdims=True), values.shape)


def profile(name: str, mean: NDArray) -> NDArray[np.float64]:
    """A static profile [token, coefficient] from the calibration mean [token, coefficient]."""
    if name not in PROFILES:
        raise FcaError(f"unknown static profile {name!r}; known: {', '.join(PROFILES)}")
    return static(mean, PROFILES[name])


def oracle(name: str, coefficients: NDArray) -> NDArray[np.float64]:
    """An oracle's coefficients [input, token, coefficient] from the evaluation cache."""
    return static(coefficients, ORACLES[name])
