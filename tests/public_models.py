"""Tiny random models of public architectures, built by transformers."""

import torch
import transformers
from torch import nn

COMMON = {
    "vocab_size": 100,
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 8,
    "max_position_embeddings": 64,
    "pad_token_id": 0,
    "bos_token_id": 1,
    "eos_token_id": 2,
}
EXPERTS = {"num_experts": 6, "num_experts_per_tok": 2}
LOCAL = {"num_local_experts": 6, "num_experts_per_tok": 2}
SHARED = {**EXPERTS, "moe_intermediate_size": 16, "shared_expert_intermediate_size": 16}
LATENT = {"kv_lora_rank": 8, "q_lora_rank": 8, "qk_rope_head_dim": 4, "qk_nope_head_dim": 4, "v_head_dim": 8}
DEEPSEEK = {
    **COMMON,
    **LATENT,
    "num_key_value_heads": 4,
    "head_dim": 4,
    "moe_intermediate_size": 16,
    "n_routed_experts": 8,
    "num_experts_per_tok": 2,
}

#: name -> (config class, model class or None for a causal language model, settings)
MODELS = {
    "mixtral": ("MixtralConfig", None, COMMON | LOCAL),
    "olmoe": ("OlmoeConfig", None, COMMON | EXPERTS),
    "qwen2_moe": ("Qwen2MoeConfig", None, COMMON | SHARED),
    "qwen3_moe": ("Qwen3MoeConfig", None, COMMON | EXPERTS | {"moe_intermediate_size": 16, "norm_topk_prob": True}),
    "qwen3_next": (
        "Qwen3NextConfig",
        None,
        COMMON | SHARED | {"num_hidden_layers": 4, "linear_num_key_heads": 2, "linear_num_value_heads": 4}
        | {"linear_key_head_dim": 8, "linear_value_head_dim": 8},
    ),
    "gpt_oss": ("GptOssConfig", None, COMMON | LOCAL),
    "granitemoe": ("GraniteMoeConfig", None, COMMON | LOCAL),
    "phimoe": ("PhimoeConfig", None, COMMON | LOCAL),
    "deepseek_v2": ("DeepseekV2Config", None, DEEPSEEK | {"first_k_dense_replace": 0}),
    "deepseek_v3": ("DeepseekV3Config", None, DEEPSEEK | {"n_group": 2, "topk_group": 1, "first_k_dense_replace": 1}),
    "deepseek_v4": (
        "DeepseekV4Config",
        None,
        COMMON | {"n_routed_experts": 8, "num_experts_per_tok": 2, "moe_intermediate_size": 16},
    ),
    "llama4": (
        "Llama4TextConfig",
        "Llama4ForCausalLM",
        COMMON | {"num_local_experts": 6, "num_experts_per_tok": 1, "intermediate_size_mlp": 48}
        | {"interleave_moe_layer_step": 1},
    ),
    "longcat": (
        "LongcatFlashConfig",
        None,
        LATENT
        | {k: COMMON[k] for k in ("vocab_size", "hidden_size", "num_attention_heads", "max_position_embeddings", "pad_token_id")}
        | {"num_layers": 2, "ffn_hidden_size": 48, "expert_ffn_hidden_size": 16, "head_dim": 4}
        | {"n_routed_experts": 6, "zero_expert_num": 2, "moe_topk": 2},
    ),
    "zaya": (
        "ZayaConfig",
        None,
        COMMON | {"num_experts": 6, "num_experts_per_tok": 1, "moe_intermediate_size": 16, "router_hidden_size": 16},
    ),
    "dbrx": (
        "DbrxConfig",
        None,
        {"vocab_size": 100, "d_model": 32, "n_heads": 4, "n_layers": 2, "max_seq_len": 64}
        | {"ffn_config": {"ffn_hidden_size": 16, "moe_num_experts": 6, "moe_top_k": 2}}
        | {"attn_config": {"kv_n_heads": 2, "rope_theta": 10000.0, "clip_qkv": 8.0}},
    ),
    "jetmoe": (
        "JetMoeConfig",
        None,
        {k: v for k, v in COMMON.items() if k not in ("num_attention_heads", "head_dim")} | LOCAL | {"kv_channels": 8},
    ),
    "gemma3n": (
        "Gemma3nTextConfig",
        "Gemma3nForCausalLM",
        COMMON | {"num_hidden_layers": 4, "hidden_size_per_layer_input": 8, "vocab_size_per_layer_input": 100}
        | {"laurel_rank": 4, "num_kv_shared_layers": 0, "activation_sparsity_pattern": [0.0] * 4}
        | {"layer_types": ["sliding_attention", "full_attention"] * 2},
    ),
    "mamba": ("MambaConfig", None, {"vocab_size": 100, "hidden_size": 32, "num_hidden_layers": 2, "state_size": 4, "pad_token_id": 0}),
    "rwkv": (
        "RwkvConfig",
        None,
        {"vocab_size": 100, "hidden_size": 32, "num_hidden_layers": 2, "attention_hidden_size": 32}
        | {"intermediate_size": 48, "context_length": 64},
    ),
    "llama": ("LlamaConfig", None, COMMON),
}  # fmt: skip


def build(name: str) -> nn.Module:
    config_class, model_class, settings = MODELS[name]
    torch.manual_seed(0)
    config = getattr(transformers, config_class)(**settings)
    config._experts_implementation = "eager"
    config.use_cache = False
    make = (
        getattr(transformers, model_class) if model_class else transformers.AutoModelForCausalLM.from_config
    )
    model = make(config)
    for parameter in model.parameters():
        if parameter.ndim >= 2:
            nn.init.normal_(parameter, std=0.3)
    return model.eval().requires_grad_(False)
