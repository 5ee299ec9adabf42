"""In: token ids [batch, token]. Out: logits [batch, token, vocabulary]. MUDD connections.

MUDDPythia and MUDDFormer (Xiao et al. 2025, arXiv 2502.12170): after every layer a mixer emits,
per token, one weight per stream (query, key, value, residual) and source (embedding, layer 0,
..., the layer itself), and the next layer's streams are the weighted sums of the sources.
Module names follow the published checkpoints, except that each mixer holds its static bias.
"""

import re
from dataclasses import dataclass, fields

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from fca.networks.sites import Output, Site

STREAMS = ("query", "key", "value", "residual")


@dataclass(frozen=True)
class Config:
    """The published config.json's own keys, as far as they change what is computed."""

    vocab_size: int
    block_size: int  # longest sequence, tokens
    n_layer: int
    n_head: int
    dim: int
    intermediate_size: int
    model_type: str = "muddpythia"  # or "muddformer": RMS norms, gated feed-forward, full rotary
    norm_eps: float = 1e-5
    rope_base: float = 10_000
    rotary_pct: float = 0.25  # muddpythia only
    use_qk_norm: bool = True
    expand_last: bool = True
    round64: bool = True
    sepln: bool = True

    @property
    def former(self) -> bool:
        return self.model_type == "muddformer"

    @property
    def head_dim(self) -> int:
        return self.dim // self.n_head

    def streams(self, layer: int) -> tuple[str, ...]:
        """The streams mixed after a layer; what leaves the last one is a single stream."""
        return STREAMS if layer < self.n_layer - 1 else STREAMS[-1:]

    def norm(self) -> nn.Module:
        kind = RMSNorm if self.former else nn.LayerNorm
        return kind(self.dim, eps=self.norm_eps)


class RMSNorm(nn.Module):
    """RMS norm computed in float32, scaled in the model's precision, as the release does."""

    def __init__(self, width: int, eps: float):
        super().__init__()
        self.eps = eps
        self.weight = nn.Parameter(torch.ones(width))

    def forward(self, x: Tensor) -> Tensor:
        return F.rms_norm(x.float(), (x.shape[-1],), eps=self.eps).type_as(x) * self.weight


class Mixer(nn.Module):
    """The controller after one layer: mixing weights [batch, token, stream, source]."""

    def __init__(self, config: Config, layer: int):
        super().__init__()
        self.eps = config.norm_eps
        self.shape = (len(config.streams(layer)), layer + 2)
        weights = self.shape[0] * self.shape[1]
        last = layer == config.n_layer - 1
        hidden = weights * 4 if last and config.expand_last else weights
        if config.round64:
            hidden = (hidden // 64 + 1) * 64
        self.w1 = nn.Linear(config.dim, hidden, bias=False)
        self.w2 = nn.Linear(hidden, weights, bias=False)
        # ASSUME: training starts at the plain Transformer: the dynamic part at 0 and the static
        # bias 1 on the newest source, as in the implementation the released weights come from.
        nn.init.zeros_(self.w2.weight)
        self.bias = nn.Parameter(
            F.one_hot(torch.tensor(layer + 1), layer + 2).float().repeat(self.shape[0], 1)
        )

    def forward(self, x: Tensor) -> Tensor:  # [batch, token, dim]
        x = x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + self.eps)
        return self.w2(F.gelu(self.w1(x))).unflatten(-1, self.shape) + self.bias


class Attention(nn.Module):
    """Causal self-attention whose query, key and value come from streams of their own."""

    cosine: Tensor
    sine: Tensor

    def __init__(self, config: Config):
        super().__init__()
        self.config = config
        self.wq, self.wk, self.wv, self.wo = (
            nn.Linear(config.dim, config.dim, bias=not config.former) for _ in range(4)
        )
        if config.use_qk_norm:
            # the release uses RMS norms here in both families
            self.q_norm = RMSNorm(config.head_dim, config.norm_eps)
            self.k_norm = RMSNorm(config.head_dim, config.norm_eps)
        turned = config.head_dim if config.former else int(config.head_dim * config.rotary_pct)
        frequency = config.rope_base ** (-torch.arange(0, turned, 2).float() / turned)
        angle = torch.outer(torch.arange(config.block_size).float(), frequency)
        # The releases tabulate the angles in half precision, MUDDFormer's in bfloat16; the same
        # rounding is needed to meet the published results.
        table = torch.bfloat16 if config.former else torch.float16
        self.register_buffer("cosine", angle.cos().to(table).float(), persistent=False)
        self.register_buffer("sine", angle.sin().to(table).float(), persistent=False)

    def rotate(self, x: Tensor) -> Tensor:  # [batch, token, head, D]
        turned = 2 * self.cosine.shape[-1]
        first, second = x[..., :turned].float().chunk(2, dim=-1)
        cosine = self.cosine[: x.shape[1], None].float()
        sine = self.sine[: x.shape[1], None].float()
        rotated = torch.cat([first * cosine - second * sine, second * cosine + first * sine], dim=-1)
        return torch.cat([rotated.type_as(x), x[..., turned:]], dim=-1)

    def forward(self, query: Tensor, key: Tensor, value: Tensor) -> Tensor:
        heads = (self.config.n_head, self.config.head_dim)
        q, k, v = (w(x).unflatten(-1, heads) for w, x in ((self.wq, query), (self.wk, key), (self.wv, value)))
        if self.config.use_qk_norm:
            q, k = self.q_norm(q), self.k_norm(k)
        q, k, v = (x.transpose(1, 2) for x in (self.rotate(q), self.rotate(k), v))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.wo(y.transpose(1, 2).flatten(2))


class FeedForward(nn.Module):
    """GELU feed-forward (MUDDPythia) or gated SiLU (MUDDFormer); wider with depth."""

    def __init__(self, config: Config, layer: int):
        super().__init__()
        share = layer / max(config.n_layer - 1, 1) + 0.5
        hidden = max(round(config.intermediate_size * share / 128), 1) * 128
        self.w1 = nn.Linear(config.dim, hidden, bias=not config.former)
        self.w2 = nn.Linear(hidden, config.dim, bias=not config.former)
        if config.former:
            self.w3 = nn.Linear(config.dim, hidden, bias=False)
        self.former = config.former

    def forward(self, x: Tensor) -> Tensor:
        if self.former:
            return self.w2(F.silu(self.w1(x)) * self.w3(x))
        return self.w2(F.gelu(self.w1(x)))


class Layer(nn.Module):
    """One layer on its streams; MUDDPythia adds both updates to the residual in parallel."""

    def __init__(self, config: Config, layer: int):
        super().__init__()
        self.parallel = not config.former
        self.attention = Attention(config)
        self.feed_forward = FeedForward(config, layer)
        self.ffn_norm = config.norm()
        if config.sepln and layer > 0:
            self.attention_norms = nn.ModuleList(config.norm() for _ in range(3))
        else:
            self.attention_norm = config.norm()

    def forward(self, streams: Tensor) -> Tensor:  # [4, batch, token, dim]
        query, key, value, residual = streams
        if hasattr(self, "attention_norms"):
            normed = [norm(x) for norm, x in zip(self.attention_norms, (query, key, value))]
        else:
            normed = [self.attention_norm(x) for x in (query, key, value)]
        attended = residual + self.attention(*normed)
        return attended + self.feed_forward(self.ffn_norm(residual if self.parallel else attended))


class Connection(nn.Module):
    """The next layer's streams, summed from all sources; a module so that layer maps can reuse it."""

    def forward(self, sources: list[Tensor], weights: Tensor) -> Tensor:  # [stream, batch, token, dim]
        return torch.einsum("sbtd,btcs->cbtd", torch.stack(sources), weights)


class Mudd(nn.Module):
    """Layers that read four mixed streams, a mixer after each, and an output layer of its own."""

    def __init__(self, config: Config):
        super().__init__()
        self.config = config
        self.tok_embeddings = nn.Embedding(config.vocab_size, config.dim)
        self.layers = nn.ModuleList(Layer(config, layer) for layer in range(config.n_layer))
        self.mixers = nn.ModuleList(Mixer(config, layer) for layer in range(config.n_layer))
        self.connections = nn.ModuleList(Connection() for _ in self.layers)
        self.norm = config.norm()
        self.output = nn.Linear(config.dim, config.vocab_size, bias=False)

    @property
    def between_blocks(self) -> list[str]:
        return [f"connections.{layer}" for layer in range(len(self.connections))]

    def forward(self, tokens: Tensor) -> Tensor:
        x = self.tok_embeddings(tokens)
        sources = [x]
        streams = x.expand(len(STREAMS), *x.shape)
        for layer, mixer, connection in zip(self.layers, self.mixers, self.connections):
            x = layer(streams)
            sources.append(x)
            streams = connection(sources, mixer(x))
        return self.output(self.norm(streams[-1]))


def build(architecture: dict) -> Mudd:
    """A model from the published config.json, or from the sizes that all kinds here share."""
    if "layers" in architecture:
        shared = architecture
        architecture = {
            "vocab_size": shared["vocabulary"],
            "block_size": shared["length"],
            "n_layer": shared["layers"],
            "n_head": shared["heads"],
            "dim": shared["width"],
            "intermediate_size": 4 * shared["width"],
        }
    known = {f.name for f in fields(Config)}
    return Mudd(Config(**{k: v for k, v in architecture.items() if k in known}))


def rename(name: str) -> str:
    """A published parameter's name here: `dynamic_dense.3.w1` and `dense_bs.3` are one mixer."""
    name = re.sub(r"^dense_bs\.(\d+)$", r"mixers.\1.bias", name)
    return re.sub(r"^dynamic_dense\.", "mixers.", name)


def sites(model: Mudd) -> list[Site]:
    config = model.config
    return [
        Output(
            path=f"mixers.{layer}",
            layer=layer,
            labels={
                "stream": tuple(s for s in config.streams(layer) for _ in range(layer + 2)),
                "source": tuple(range(layer + 2)) * len(config.streams(layer)),
            },
        )
        for layer in range(config.n_layer)
    ]
