"""In: a model. Out: the controllers that are known to be in it, as sites.

One declaration per family: where its modules are, how a site is made of one, and what is known
about execution. Paths and outputs were read from transformers 5.24 and timm 1.0.31.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from torch import nn

from fca.controllers.adapters import HyperConnection
from fca.controllers.paths import layers_of
from fca.controllers.routing import ScoresRoute, SwitchRoute, TupleRoute
from fca.controllers.sites import Inside, Output, Site, Slice
from fca.errors import FcaError

# models and modules of others: their attributes are not known to a type checker
Make = Callable[[Any, Any, str, int], Site | None]

SKIPS = "only chosen experts run"
RUNS_ALL = "every expert runs on every token"
DENSE = "nothing is skipped"


@dataclass(frozen=True)
class Family:
    """A kind of controller. name: as used in config. ends: how its modules' paths end.

    make(model, module, path, layer) gives the site, or None where the module is something else.
    """

    name: str
    ends: tuple[str, ...]
    make: Make
    known: str  # what is known about execution
    types: tuple[str, ...] = ()  # model types it is limited to; empty: any

    def sites(self, model: nn.Module) -> list[Site]:
        kind = getattr(getattr(model, "config", None), "model_type", "")
        if self.types and kind not in self.types:
            return []
        ends = tuple(f".{end}" for end in self.ends)
        found = [(path, m) for path, m in model.named_modules() if path and f".{path}".endswith(ends)]
        layers = layers_of([path for path, _ in found])
        made = (self.make(model, m, path, layer) for (path, m), layer in zip(found, layers))
        return [site for site in made if site is not None]


def setting(model: Any, module: Any, *names: str, default: Any = None) -> Any:
    """The first of several names that the module or the model's config has."""
    for owner in (module, getattr(model, "config", None)):
        for name in names:
            if getattr(owner, name, None) is not None:
                return getattr(owner, name)
    return default


def experts(model: Any, module: Any) -> int | None:
    """How many experts a router chooses from, skip classes and identity experts included."""
    names = ("num_router_classes", "n_routed_experts", "num_experts", "num_local_experts")
    return setting(model, module, *names)


ADD_UP_TO_ONE = {"mixtral", "gpt_oss", "granitemoe", "granitemoeshared", "granitemoehybrid", "jetmoe"}


def tuple_router(model: Any, module: Any, path: str, layer: int) -> Site | None:
    k = setting(model, module, "top_k", "num_experts_per_tok")
    count = experts(model, module)
    if k is None or count is None:
        return None
    kind = getattr(model.config, "model_type", "")
    scale = float(setting(model, module, "routed_scaling_factor", default=1.0))
    normalised = kind in ADD_UP_TO_ONE or setting(model, module, "norm_topk_prob", default=False)
    return TupleRoute(
        path,
        layer,
        {"expert": tuple(range(count))},
        k=k,
        total=scale if normalised else None,
        extra=1 if kind == "zaya" else 0,
    )


def switch_router(model: Any, module: Any, path: str, layer: int) -> Site:
    return SwitchRoute(path, layer, {"expert": tuple(range(module.num_experts))}, k=1)


def scores_router(model: Any, module: Any, path: str, layer: int) -> Site:
    return ScoresRoute(path, layer, {"expert": tuple(range(module.num_experts))}, k=module.top_k)


def logits_router(model: Any, module: Any, path: str, layer: int) -> Site:
    """The output is the logits; the block's own top-k turns any of them into valid routing."""
    return Output(path, layer)


def output(model: Any, module: Any, path: str, layer: int) -> Site:
    return Output(path, layer)


def query_gate(model: Any, module: Any, path: str, layer: int) -> Site | None:
    """Second half of every head of q_proj: the gate of the attention output."""
    heads, width = model.config.num_attention_heads, model.config.head_dim
    if module.out_features != 2 * heads * width:
        return None
    positions = [2 * width * head + width + i for head in range(heads) for i in range(width)]
    label = {"head": tuple(head for head in range(heads) for _ in range(width))}
    return Slice(path, layer, label, positions=tuple(positions))


def hyper_connection(model: Any, module: Any, path: str, layer: int) -> Site:
    return Inside(path, layer, HyperConnection.labels(module), adapter=HyperConnection)


LLAMA_LIKE = ("llama", "mistral", "qwen2", "qwen3", "gemma", "gemma2", "gemma3_text", "phi3", "olmo2")
ROUTERS = ("mlp.gate", "mlp.router", "block_sparse_moe.router", "block_sparse_moe.gate", "feed_forward.gate")
GEMMA3N = ("gemma3n_text", "gemma3n")
SKIP_CLASS = "the skip class still runs expert 0, with weight 0"

#: in the order in which `sites: auto` tries them
FAMILIES: tuple[Family, ...] = (
    Family("switch_router", ("mlp.router",), switch_router, SKIPS, ("switch_transformers",)),
    Family("llama4_router", ("feed_forward.router",), scores_router, RUNS_ALL, ("llama4", "llama4_text")),
    Family("dbrx_router", ("ffn.router",), logits_router, SKIPS, ("dbrx",)),
    Family("jetmoe_router", ("router.layer",), logits_router, SKIPS, ("jetmoe",)),
    Family("zaya_router", ("gate",), tuple_router, SKIP_CLASS, ("zaya",)),
    Family("router", ROUTERS, tuple_router, SKIPS),
    Family("hyper_connection", ("attn_hc", "ffn_hc"), hyper_connection, DENSE, ("deepseek_v4",)),
    Family("altup", ("altup.modality_router",), output, DENSE, GEMMA3N),
    Family("altup_prediction", ("altup.prediction_coefs",), output, DENSE, GEMMA3N),
    Family("altup_correction", ("altup.correction_coefs",), output, DENSE, GEMMA3N),
    Family("mamba", ("mixer.x_proj",), output, DENSE, ("mamba", "falcon_mamba")),
    Family("rwkv", ("attention.receptance",), output, DENSE, ("rwkv",)),
    Family("delta_net", ("linear_attn.in_proj_ba",), output, DENSE),
    Family("shared_expert_gate", ("mlp.shared_expert_gate",), output, DENSE),
    Family("attention_gate", ("self_attn.q_proj",), query_gate, DENSE, ("qwen3_next", "qwen3_5_text")),
    Family("attention_gate_proj", ("self_attn.gate_proj", "self_attn.g_proj"), output, DENSE),
    Family("squeeze_excite", ("se.gate",), output, DENSE),
    Family("cond_conv", ("routing_fn",), output, DENSE),
    Family("selective_kernel", ("conv1.attn", "conv2.attn", "rsoftmax"), output, DENSE),
    Family("swiglu", ("mlp.act_fn",), output, DENSE, LLAMA_LIKE),
)
PARTICULAR_ROUTERS = ("switch_router", "llama4_router", "dbrx_router", "jetmoe_router", "zaya_router")

#: parameters that look like coefficients but are the same for every input: nothing to audit
STATIC_PARAMETERS = (
    "layer_scale", "layerscale", "resweight", "skipinit", "skip_gain", "dwa", "gamma",
)  # fmt: skip


def static_parameters(model: nn.Module) -> list[str]:
    """Names of parameters that scale residuals statically (LayerScale, ReZero, SkipInit, ...)."""
    return [n for n, _ in model.named_parameters() if any(mark in n.lower() for mark in STATIC_PARAMETERS)]


def known_sites(model: nn.Module) -> dict[str, list[Site]]:
    """All families that are in a model, with their sites; a particular router goes before `router`."""
    found = {family.name: sites for family in FAMILIES if (sites := family.sites(model))}
    if any(name in found for name in PARTICULAR_ROUTERS):
        found.pop("router", None)
    return found


def select(model: nn.Module, name: str) -> list[Site]:
    """Sites of one family, or of the first one found for `auto`. Raises FcaError naming others."""
    found = known_sites(model)
    if name == "auto" and found:
        return next(iter(found.values()))
    if name in found:
        return found[name]
    scaled = static_parameters(model)
    hint = (
        f"; its {', '.join(scaled[:3])} are parameters, the same for every input: nothing to audit"
        if scaled
        else ""
    )
    raise FcaError(
        f"sites {name!r}: no such controller in {type(model).__name__}; "
        f"found {', '.join(found) or 'no known controller'}{hint}"
    )
