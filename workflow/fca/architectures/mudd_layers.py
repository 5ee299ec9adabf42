"""In: four streams [batch, token, dim]. Out: one layer's output [batch, token, dim]. MUDD's layers.

What a MUDDPythia or MUDDFormer layer computes from its query, key, value and residual streams;
how the streams are mixed is in `mudd`.
"""

from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional as F

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
            # the release uses RMS norms here in both of its models
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
