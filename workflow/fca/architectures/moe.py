"""In: token ids [batch, token]. Out: logits [batch, token, vocabulary]. Top-k experts.

A Transformer whose feed-forwards are mixtures of experts: a router emits the weight of every
expert for every token, 0 for all but the k chosen ones, and only those run.
"""

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from fca.architectures import dense
from fca.controllers.routing import Route
from fca.controllers.sites import Site


@dataclass(frozen=True)
class Config(dense.Config):
    """A dense Transformer's sizes and its experts."""

    experts: int = 4
    k: int = 1
    # ASSUME: the experts together are as wide as 2 dense feed-forwards, so that with 1 of 4 a
    # token uses half of one: a saving that can be seen in the FLOPs.
    expert_share: float = 0.5  # width of one expert, share of the dense feed-forward's
    balance: float = 0.01  # weight of the load-balancing loss (Fedus et al. 2022)


class Router(nn.Module):
    """The controller: weights [batch, token, expert], 0 where not chosen, else adding up to 1
    (k > 1) or the softmax probability itself (k = 1, as in Switch, so that it can learn).
    """

    def __init__(self, config: Config):
        super().__init__()
        self.k = config.k
        self.choice = nn.Linear(config.width, config.experts, bias=False)
        self.balance = torch.zeros(())

    def forward(self, x: Tensor) -> Tensor:
        probability = self.choice(x).softmax(-1)
        chosen, experts = probability.topk(self.k, dim=-1)
        if self.k > 1:
            chosen = chosen / chosen.sum(-1, keepdim=True)
        weights = torch.zeros_like(probability).scatter(-1, experts, chosen)
        if self.training:
            load = (weights > 0).float().mean((0, 1)) / self.k
            self.balance = weights.shape[-1] * (load * probability.mean((0, 1))).sum()
        return weights


class Experts(nn.Module):
    """Feed-forwards side by side; each runs on the tokens that give it weight, and no others."""

    def __init__(self, config: Config):
        super().__init__()
        hidden = round(4 * config.width * config.expert_share)
        self.each = nn.ModuleList(
            nn.Sequential(
                nn.Linear(config.width, hidden, bias=False),
                nn.GELU(),
                nn.Linear(hidden, config.width, bias=False),
            )
            for _ in range(config.experts)
        )

    def forward(self, x: Tensor, weights: Tensor) -> Tensor:
        flat, weight = x.flatten(0, 1), weights.flatten(0, 1)
        total = torch.zeros_like(flat)
        for number, expert in enumerate(self.each):
            rows = weight[:, number].nonzero().squeeze(-1)
            if len(rows):
                total = total.index_add(0, rows, expert(flat[rows]) * weight[rows, number, None])
        return total.view_as(x)


class MoeBlock(dense.Block):
    """A block whose feed-forward is a mixture of experts."""

    def __init__(self, config: Config):
        super().__init__(config)
        del self.feed_forward
        self.router = Router(config)
        self.experts = Experts(config)

    def forward(self, h: Tensor) -> Tensor:
        h = h + self.attention(self.attention_norm(h))
        x = self.feed_forward_norm(h)
        return h + self.experts(x, self.router(x))


class Moe(dense.Transformer):
    """A Transformer of such blocks; `auxiliary` is what training adds to the loss."""

    config: Config

    @property
    def auxiliary(self) -> Tensor:
        found = [block.router.balance for block in self.blocks if isinstance(block, MoeBlock)]
        return self.config.balance * torch.stack(found).mean()


def build(architecture: dict) -> Moe:
    return Moe(Config(**architecture), MoeBlock)


def sites(model: Moe) -> list[Site]:
    config = model.config
    return [
        Route(
            f"blocks.{layer}.router",
            layer,
            {"expert": tuple(range(config.experts))},
            k=config.k,
            total=1.0 if config.k > 1 else None,
        )
        for layer in range(config.layers)
    ]
