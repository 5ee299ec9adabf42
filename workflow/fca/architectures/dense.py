"""In: token ids [batch, token]. Out: logits [batch, token, vocabulary]. The dense baseline.

A decoder-only Transformer: pre-norm, rotary positions, tied embeddings, no controller.
"""

import math
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from fca.controllers.sites import Site


@dataclass(frozen=True)
class Config:
    """Sizes of a dense Transformer."""

    vocabulary: int
    length: int  # longest sequence, tokens
    layers: int
    width: int
    heads: int


class Rotary(nn.Module):
    """Rotates pairs (d, d + D/2) of each head by angles that grow with the position.

    ASSUME: rotary positions (base 10000), since the paper's text does not name the dense
    model's position code and rotary is the common choice of the compared MUDDPythia.
    """

    cosine: Tensor
    sine: Tensor

    def __init__(self, length: int, head_width: int, base: float = 10_000.0):
        super().__init__()
        frequency = base ** (-torch.arange(0, head_width, 2).float() / head_width)
        angle = torch.outer(torch.arange(length).float(), frequency)  # [token, D/2]
        self.register_buffer("cosine", angle.cos(), persistent=False)
        self.register_buffer("sine", angle.sin(), persistent=False)

    def forward(self, x: Tensor, positions: Tensor | None = None) -> Tensor:
        """x [batch, head, token, D] at positions [batch, token], by default 0, 1, 2, ..."""
        first, second = x.chunk(2, dim=-1)
        if positions is None:
            cosine, sine = self.cosine[: x.shape[-2]], self.sine[: x.shape[-2]]
        else:
            cosine, sine = self.cosine[positions].unsqueeze(1), self.sine[positions].unsqueeze(1)
        cosine, sine = cosine.to(x.dtype), sine.to(x.dtype)
        return torch.cat([first * cosine - second * sine, second * cosine + first * sine], dim=-1)


class Attention(nn.Module):
    """Causal multi-head self-attention."""

    def __init__(self, config: Config):
        super().__init__()
        self.heads = config.heads
        self.qkv = nn.Linear(config.width, 3 * config.width, bias=False)
        self.out = nn.Linear(config.width, config.width, bias=False)
        self.rotary = Rotary(config.length, config.width // config.heads)

    def forward(self, x: Tensor) -> Tensor:  # [batch, token, width]
        batch, token, width = x.shape
        qkv = self.qkv(x).view(batch, token, 3, self.heads, width // self.heads)
        q, k, v = qkv.permute(2, 0, 3, 1, 4)  # each [batch, head, token, D]
        y = F.scaled_dot_product_attention(self.rotary(q), self.rotary(k), v, is_causal=True)
        return self.out(y.transpose(1, 2).reshape(batch, token, width))


class FeedForward(nn.Module):
    """Width -> 4 width -> width with GELU."""

    def __init__(self, config: Config):
        super().__init__()
        self.up = nn.Linear(config.width, 4 * config.width, bias=False)
        self.down = nn.Linear(4 * config.width, config.width, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        return self.down(F.gelu(self.up(x)))


class Block(nn.Module):
    """Attention, then feed-forward; each adds its update to the residual stream."""

    def __init__(self, config: Config):
        super().__init__()
        self.attention_norm = nn.RMSNorm(config.width)
        self.attention = Attention(config)
        self.feed_forward_norm = nn.RMSNorm(config.width)
        self.feed_forward = FeedForward(config)

    def forward(self, h: Tensor) -> Tensor:  # [batch, token, width]
        h = h + self.attention(self.attention_norm(h))
        return h + self.feed_forward(self.feed_forward_norm(h))


class Transformer(nn.Module):
    """Embedding, blocks, norm, and the embedding again as the output layer."""

    def __init__(self, config: Config, block: type[nn.Module] = Block):
        super().__init__()
        self.config = config
        self.embedding = nn.Embedding(config.vocabulary, config.width)
        self.blocks = nn.ModuleList(block(config) for _ in range(config.layers))
        self.norm = nn.RMSNorm(config.width)
        initialise(self, config.layers)

    def forward(self, tokens: Tensor) -> Tensor:
        h = self.embedding(tokens)
        for block in self.blocks:
            h = block(h)
        return F.linear(self.norm(h), self.embedding.weight)


def initialise(model: nn.Module, layers: int) -> None:
    """Normal weights of deviation 0.02; what writes to the residual stream 1/sqrt(2 layers) of it.

    ASSUME: GPT-2's initialisation, the usual one at these sizes.
    """
    for name, parameter in model.named_parameters():
        if parameter.ndim == 2:
            writes = name.endswith(("attention.out.weight", "feed_forward.down.weight"))
            scale = 0.02 / math.sqrt(2 * layers) if writes else 0.02
            nn.init.normal_(parameter, std=scale)


def build(architecture: dict) -> Transformer:
    return Transformer(Config(**architecture))


def sites(model: Transformer) -> list[Site]:
    """A dense model has no controller."""
    return []
