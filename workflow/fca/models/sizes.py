"""In: an architecture's options. Out: its sizes, counted from shapes, without building it.

The shapes are those of the modules in `fca.architectures`, which a test compares with. A kind of
model says in `fca.models.kinds` which of these functions counts it.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any


@dataclass(frozen=True)
class Sizes:
    """Sizes of one model.

    parameters: all of them. multiplied: weights that one token meets in matrix products, two
    operations each. coefficients: that its controllers emit per token. streams: residual-wide
    tensors that are alive at once in a pass. file: bytes of the weights on the disk, 0 for float32.
    assumed: what was not known, for a person to read.
    """

    parameters: float
    multiplied: float
    layers: int
    width: int
    vocabulary: int
    coefficients: int = 0
    streams: float = 8
    file: float = 0
    assumed: str = ""

    def flops(self, length: int) -> float:
        """Operations of one token's forward pass; attention over all pairs, as `machine.counting` counts."""
        return 2 * self.multiplied + 4 * self.layers * self.width * length


def dense(architecture: Mapping[str, Any]) -> Sizes:
    layers, width = architecture["layers"], architecture["width"]
    vocabulary = architecture["vocabulary"]
    matrices = layers * 12 * width**2
    parameters = matrices + vocabulary * width + (2 * layers + 1) * width
    return Sizes(parameters, matrices + vocabulary * width, layers, width, vocabulary)


def featuregate(architecture: Mapping[str, Any]) -> Sizes:
    plain = dense(architecture)
    seen = plain.width if architecture.get("features") == "residual" else 4
    hidden = architecture.get("gate_width", 32)
    gates = plain.layers * hidden * (seen + 1)
    return replace(
        plain,
        parameters=plain.parameters + gates + plain.layers * (hidden + 1),
        multiplied=plain.multiplied + gates,
        coefficients=plain.layers,
    )


def mudd(architecture: Mapping[str, Any]) -> Sizes:
    """Of the sizes that all kinds share, or of a published config.json."""
    if "layers" in architecture:
        shared = architecture
        architecture = {
            "n_layer": shared["layers"], "dim": shared["width"], "vocab_size": shared["vocabulary"],
            "intermediate_size": 4 * shared["width"],
        }  # fmt: skip
    layers, width, vocabulary = (architecture[k] for k in ("n_layer", "dim", "vocab_size"))
    gated = architecture.get("model_type") == "muddformer"
    fed = mixers = mixed = 0.0
    for layer in range(layers):
        share = layer / max(layers - 1, 1) + 0.5
        hidden = max(round(architecture["intermediate_size"] * share / 128), 1) * 128
        fed += (3 if gated else 2) * width * hidden
        weights = (4 if layer < layers - 1 else 1) * (layer + 2)
        last = layer == layers - 1 and architecture.get("expand_last", True)
        inner = weights * 4 if last else weights
        inner = (inner // 64 + 1) * 64 if architecture.get("round64", True) else inner
        mixers += inner * (width + weights)
        mixed += weights
    matrices = layers * 4 * width**2 + fed + mixers
    return Sizes(
        parameters=matrices + 2 * vocabulary * width + mixed,
        multiplied=matrices + vocabulary * width + mixed * width,
        layers=layers,
        width=width,
        vocabulary=vocabulary,
        coefficients=int(mixed),
        streams=2 * (layers + 2) + 12,  # every layer's output, stacked again for each mixing
    )


def moe(architecture: Mapping[str, Any]) -> Sizes:
    plain = dense(architecture)
    experts, k = architecture.get("experts", 4), architecture.get("k", 1)
    one = plain.layers * 8 * architecture.get("expert_share", 0.5) * plain.width**2
    routers = plain.layers * experts * plain.width
    replaced = plain.layers * 8 * plain.width**2
    return replace(
        plain,
        parameters=plain.parameters - replaced + experts * one + routers,
        multiplied=plain.multiplied - replaced + k * one + routers,
        coefficients=plain.layers * experts,
    )


def mixture_of_depths(architecture: Mapping[str, Any]) -> Sizes:
    plain = dense(architecture)
    routed, share = plain.layers // 2, architecture.get("share", 0.5)
    routers = routed * (plain.width + 1)
    return replace(
        plain,
        parameters=plain.parameters + routers,
        multiplied=plain.multiplied - routed * 12 * plain.width**2 * (1 - share) + routers,
        coefficients=routed,
    )


def early_exit(architecture: Mapping[str, Any]) -> Sizes:
    """Counted as if no token left early: how many will is not known before training."""
    plain = dense(architecture)
    exits = plain.layers - 1
    return replace(plain, parameters=plain.parameters + exits * (plain.width + 1), coefficients=exits)
