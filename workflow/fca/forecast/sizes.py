"""In: what the plan knows of a model. Out: its sizes, counted from shapes, without loading it.

Needs and forecasts follow from these numbers. The shapes are those of the modules in
`fca.networks`, which a test compares with; what cannot be read is assumed and said to be.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from fca.networks.kinds import TRAINED

BITS = {"float64": 64, "float32": 32, "F32": 32, "float16": 16, "bfloat16": 16, "F16": 16, "BF16": 16}


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
        """Operations of one token's forward pass; attention over all pairs, as `networks.cost` counts."""
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


TRAINED_SIZES: dict[str, Callable[[Mapping[str, Any]], Sizes]] = {
    "dense": dense,
    "rezero": dense,
    "featuregate": featuregate,
    "mudd": mudd,
    "moe": moe,
    "mixture_of_depths": mixture_of_depths,
    "early_exit": early_exit,
}
assert TRAINED_SIZES.keys() == TRAINED.keys()

# ASSUME: a model of which nothing can be read is as large as a small language model.
UNKNOWN = Sizes(135e6, 135e6, 30, 576, 50_000, 30 * 1536)


def imported(kind: str, source: str, sites: Mapping[str, Any]) -> Sizes:
    """Sizes of a model that exists, from its config.json and the size of its weights."""
    folder = Path(source)
    held = weights_bytes(folder)
    try:
        config = json.loads((folder / "config.json").read_text())
    except (OSError, ValueError):
        return from_weights(held)
    own = "mudd" if kind == "mudd" else config.get("kind")
    if own in TRAINED_SIZES:
        return replace(TRAINED_SIZES[own](config), file=held)
    config = config.get("text_config", config)

    def setting(*names: str, default: int) -> int:
        return next((config[n] for n in names if isinstance(config.get(n), int)), default)

    width = setting("hidden_size", "n_embd", "d_model", default=UNKNOWN.width)
    layers = setting("num_hidden_layers", "n_layer", "num_layers", default=UNKNOWN.layers)
    vocabulary = setting("vocab_size", default=UNKNOWN.vocabulary)
    inner = setting("intermediate_size", "n_inner", "d_ff", default=4 * width)
    experts = setting("num_experts", "num_local_experts", "n_routed_experts", default=0)
    bits = BITS.get(str(config.get("torch_dtype") or config.get("dtype")), 16)
    parameters = held * 8 / bits if held else float(layers * (4 * width**2 + 3 * width * inner))
    # ASSUME: with a router, what it emits is audited; else one coefficient per hidden channel
    channels = sites.get("positions") or experts or inner
    channels = len(channels) if isinstance(channels, list) else channels
    return Sizes(
        parameters,
        parameters,  # with experts that are skipped: at most
        layers,
        width,
        vocabulary,
        layers * channels,
        file=held,
        assumed="coefficients per token" if not sites.get("positions") else "",
    )


def from_weights(held: int) -> Sizes:
    """Without a config.json: the bytes of the weights alone, or nothing at all."""
    if not held:
        return replace(UNKNOWN, assumed="all sizes")
    # ASSUME: half a byte each where only a GGUF file is there, which is mostly quantised to 4 bits
    return replace(UNKNOWN, parameters=held * 2, multiplied=held * 2, file=held, assumed="all but parameters")


def weights_bytes(folder: Path) -> int:
    """Bytes of the weights in a folder: of the first format that is there."""
    if not folder.is_dir():
        return 0
    for pattern in ("*.safetensors", "pytorch_model*.bin", "*.gguf"):
        if found := [file.stat().st_size for file in folder.glob(pattern)]:
            return sum(found)
    return 0
