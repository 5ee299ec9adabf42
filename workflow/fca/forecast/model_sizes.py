"""In: what the plan knows of a model. Out: its sizes, without loading it.

Needs and forecasts follow from these numbers. What cannot be read is assumed and said to be.
"""

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from fca.models import sizes
from fca.models.kinds import TRAINED
from fca.models.sizes import Sizes

BITS = {"float64": 64, "float32": 32, "F32": 32, "float16": 16, "bfloat16": 16, "F16": 16, "BF16": 16}


def trained(kind: str, architecture: Mapping[str, Any]) -> Sizes:
    """Sizes of a model of a kind that can be trained here."""
    return getattr(sizes, TRAINED[kind].sizes)(architecture)


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
    if own in TRAINED:
        return replace(trained(own, config), file=held)
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
