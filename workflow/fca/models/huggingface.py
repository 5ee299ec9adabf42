"""In: a Hugging Face model by name or folder. Out: a frozen causal language model to audit."""

from typing import Any

import torch
from torch import nn

from fca.errors import FcaError


def load(source: str, dtype: torch.dtype, options: dict[str, Any]) -> nn.Module:
    """Load with safetensors, without a cache and without the model's own code unless allowed.

    options: trust_remote_code; gguf_file, the file inside a folder to read instead. Experts run
    in their plain implementation, since the grouped one hides their operations from the FLOP
    counter. Raises FcaError where it cannot be loaded.
    """
    try:
        from transformers import AutoConfig, AutoModelForCausalLM
    except ImportError:
        raise FcaError(f"model {source!r} needs the package transformers (extra `hf`)") from None
    common = {"trust_remote_code": bool(options.get("trust_remote_code", False))}
    common |= {"gguf_file": options["gguf_file"]} if "gguf_file" in options else {"use_safetensors": True}
    try:
        config = AutoConfig.from_pretrained(
            source, **{k: v for k, v in common.items() if k != "use_safetensors"}
        )
        plain = {"experts_implementation": "eager"} if has_experts(config) else {}
        model = AutoModelForCausalLM.from_pretrained(source, dtype=dtype, **common, **plain)
    except Exception as error:  # the library raises many kinds; the message is what helps
        raise FcaError(f"checkpoint {source!r} cannot be loaded: {error}") from None
    return prepared(model)


def prepared(model: Any) -> nn.Module:
    """No cache: a replay must compute every token as the recording did."""
    for config in {
        id(c): c for c in (model.config, getattr(model.config, "text_config", None)) if c
    }.values():
        config.use_cache = False
    return model


def has_experts(config: Any) -> bool:
    names = ("num_experts", "num_local_experts", "n_routed_experts", "moe_num_experts")
    return any(getattr(config, name, None) for name in names)
