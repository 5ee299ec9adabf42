"""In: the calibration mean [token, coefficient]. Out: static profiles of the same shape.

A profile keeps some factors of the coefficients and averages over all others; the kept ones name
it. Oracles also keep the input and are therefore means of the evaluation cache itself.
"""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fca.errors import FcaError, Undefined
from fca.interventions.lattice import KEPT

#: name -> the factors kept
PROFILES = {name: kept for name, kept in KEPT.items() if "input" not in kept}
# Means over an input's tokens hold later tokens too: a causal model sees a trace of its future.
ORACLES = {name: kept for name, kept in KEPT.items() if "input" in kept and name != "correct"}


def static(values: NDArray, kept: frozenset[str], layers: ArrayLike | None = None) -> NDArray[np.float64]:
    """Mean over the factors not kept, broadcast back: [..., token, coefficient] in float64.

    The axes before the last two (inputs) are kept: callers pass means over inputs, or, for
    oracles, the inputs themselves. layers [coefficient] are needed to average over a layer's
    channels. Raises Undefined for that where every layer has a single channel.
    """
    values = np.asarray(values, dtype=np.float64)
    shape = values.shape
    if "token" not in kept:
        values = values.mean(axis=-2, keepdims=True)
    if "layer" not in kept:
        values = values.mean(axis=-1, keepdims=True)
    elif "channel" not in kept:
        values = over_channels(values, layers)
    return np.broadcast_to(values, shape)


def over_channels(values: NDArray[np.float64], layers: ArrayLike | None) -> NDArray[np.float64]:
    """Every coefficient replaced by its layer's mean over channels, [..., coefficient]."""
    if layers is None:
        raise FcaError("a profile that keeps the layer without its channels needs the layer labels")
    names, member = np.unique(np.asarray(layers), return_inverse=True)
    if len(names) == values.shape[-1]:
        raise Undefined("every layer has a single channel, so this is the profile that keeps channels")
    means = values @ (np.eye(len(names))[member] / np.bincount(member))  # [..., layer]
    return means[..., member]


def profile(name: str, mean: NDArray, layers: ArrayLike | None = None) -> NDArray[np.float64]:
    """A static profile [token, coefficient] from the calibration mean [token, coefficient]."""
    if name not in PROFILES:
        raise FcaError(f"unknown static profile {name!r}; known: {', '.join(PROFILES)}")
    return static(mean, PROFILES[name], layers)


def oracle(name: str, coefficients: NDArray, layers: ArrayLike | None = None) -> NDArray[np.float64]:
    """An oracle's coefficients [input, token, coefficient] from the evaluation cache."""
    return static(coefficients, ORACLES[name], layers)
