"""In: token ids [batch, token]. Out: logits [batch, token, vocabulary]. Mixture of depths.

A fixed share of every sequence's tokens passes through each block, the others skip it (Raposo et
al. 2024, arXiv 2404.02258). The controller's coefficient is a weight per token, 0 for skipped.

ASSUME: tokens are chosen by comparing all tokens of the sequence, as the paper does in training;
without a look ahead, generation would need a predictor. An audit reads whole texts, so the
choice that was trained is the one that is audited. Every second block is routed, as there.
"""

from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from fca.architectures import dense
from fca.controllers.routing import TokenRoute
from fca.controllers.sites import Site


@dataclass(frozen=True)
class Config(dense.Config):
    """A dense Transformer's sizes and the share of tokens that a routed block processes."""

    share: float = 0.5


class Router(nn.Module):
    """The controller: [batch, token, 1], a sigmoid weight for the chosen tokens, else 0."""

    def __init__(self, config: Config):
        super().__init__()
        self.share = config.share
        self.score = nn.Linear(config.width, 1)

    def forward(self, h: Tensor) -> Tensor:
        weight = self.score(h).sigmoid()
        k = max(round(self.share * h.shape[1]), 1)
        order = weight.sort(dim=1, descending=True, stable=True).indices[:, :k]
        return torch.zeros_like(weight).scatter(1, order, weight.gather(1, order))


class SparseBlock(dense.Block):
    """A block that runs on chosen tokens, at their own positions, and returns their update."""

    def forward(self, h: Tensor, positions: Tensor) -> Tensor:  # type: ignore[override]
        """h [batch, chosen, width] of tokens at positions [batch, chosen]: their updates."""
        attention, x = self.attention, self.attention_norm(h)
        batch, token, width = x.shape
        heads = (3, attention.heads, width // attention.heads)
        q, k, v = attention.qkv(x).unflatten(-1, heads).permute(2, 0, 3, 1, 4)
        q, k = (attention.rotary(y, positions) for y in (q, k))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        update = attention.out(y.transpose(1, 2).reshape(batch, token, width))
        return update + self.feed_forward(self.feed_forward_norm(h + update))


class Routed(nn.Module):
    """Router and block: h + weight block(h) for the chosen tokens, h for the others."""

    def __init__(self, config: Config):
        super().__init__()
        self.router = Router(config)
        self.block = SparseBlock(config)

    def forward(self, h: Tensor) -> Tensor:
        weight = self.router(h)
        # every sequence has equally many chosen tokens; a played-back weight may leave fewer
        k = int((weight != 0).sum(1).max())
        if k == 0:
            return h
        chosen = (weight.squeeze(-1) == 0).byte().sort(dim=1, stable=True).indices[:, :k].sort(dim=1).values
        index = chosen.unsqueeze(-1).expand(-1, -1, h.shape[-1])
        update = self.block(h.gather(1, index), chosen)
        return h.scatter_add(1, index, update * weight.gather(1, chosen.unsqueeze(-1)))


class MixtureOfDepths(nn.Module):
    """Dense and routed blocks in turn."""

    def __init__(self, config: Config):
        super().__init__()
        self.config = config
        self.embedding = nn.Embedding(config.vocabulary, config.width)
        self.blocks = nn.ModuleList(
            Routed(config) if layer % 2 else dense.Block(config) for layer in range(config.layers)
        )
        self.norm = nn.RMSNorm(config.width)
        dense.initialise(self, config.layers)

    @property
    def block_paths(self) -> list[str]:
        """What counts as a block: of a routed one, the part that tokens can skip."""
        return [f"blocks.{i}.block" if i % 2 else f"blocks.{i}" for i in range(self.config.layers)]

    def forward(self, tokens: Tensor) -> Tensor:
        h = self.embedding(tokens)
        for block in self.blocks:
            h = block(h)
        return F.linear(self.norm(h), self.embedding.weight)


def build(architecture: dict) -> MixtureOfDepths:
    return MixtureOfDepths(Config(**architecture))


def sites(model: MixtureOfDepths) -> list[Site]:
    return [
        TokenRoute(f"blocks.{layer}.router", layer, share=model.config.share)
        for layer in range(1, model.config.layers, 2)
    ]
