"""In: token ids [batch, token]. Out: logits [batch, token, vocabulary]. Early exit per token.

Before each block but the first, a controller decides for every token that is still in whether it
continues. A token that has left keeps its state; later tokens can still attend to it (as in CALM,
Schuster et al. 2022, whose left tokens pass their state on), but it is processed no further.

ASSUME: the decision is a threshold at 1/2 of a sigmoid, trained straight through (the rounded
value forward, the sigmoid's gradient backward), with a cost that draws the mean share of
processed tokens towards `depth`, since without one no token has a reason to leave.
"""

from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from fca.architectures import dense
from fca.controllers.routing import Decision
from fca.controllers.sites import Site


@dataclass(frozen=True)
class Config(dense.Config):
    """A dense Transformer's sizes, the aimed share of processed tokens and the weight of that aim."""

    depth: float = 0.6
    cost: float = 1.0


class Exit(nn.Module):
    """The controller: 1 where a token would continue, 0 where it would leave, [batch, token, 1]."""

    def __init__(self, config: Config):
        super().__init__()
        self.score = nn.Linear(config.width, 1)
        self.probability = torch.zeros(())

    def forward(self, h: Tensor) -> Tensor:
        probability = self.score(F.rms_norm(h, (h.shape[-1],))).sigmoid()
        decision = (probability >= 0.5).to(h.dtype)
        if self.training:
            self.probability = probability
            decision = decision + probability - probability.detach()
        return decision


class ExitBlock(dense.Block):
    """A block that processes some of the tokens; all of them can be attended to."""

    def forward(self, h: Tensor, active: Tensor) -> Tensor:  # type: ignore[override]
        """h [batch, token, width], active [batch, active]: updates [batch, active, width]."""
        attention = self.attention
        index = active.unsqueeze(-1).expand(-1, -1, h.shape[-1])
        mine = h.gather(1, index)
        _, token, width = h.shape
        heads = (attention.heads, width // attention.heads)
        query, key, value = attention.qkv.weight.chunk(3)
        q = F.linear(self.attention_norm(mine), query).unflatten(-1, heads).transpose(1, 2)
        x = self.attention_norm(h)
        k = F.linear(x, key).unflatten(-1, heads).transpose(1, 2)
        v = F.linear(x, value).unflatten(-1, heads).transpose(1, 2)
        causal = active[:, None, :, None] >= torch.arange(token, device=h.device)
        y = F.scaled_dot_product_attention(
            attention.rotary(q, active), attention.rotary(k), v, attn_mask=causal
        )
        update = attention.out(y.transpose(1, 2).flatten(2))
        return update + self.feed_forward(self.feed_forward_norm(mine + update))


class EarlyExit(nn.Module):
    """Blocks that fewer and fewer tokens reach; `auxiliary` is what training adds to the loss."""

    def __init__(self, config: Config):
        super().__init__()
        self.config = config
        self.embedding = nn.Embedding(config.vocabulary, config.width)
        self.blocks = nn.ModuleList(ExitBlock(config) for _ in range(config.layers))
        self.exits = nn.ModuleList(Exit(config) for _ in range(config.layers - 1))
        self.norm = nn.RMSNorm(config.width)
        dense.initialise(self, config.layers)
        for leave in self.exits:
            assert isinstance(leave, Exit)
            # ASSUME: training starts with every token continuing, the dense model.
            nn.init.ones_(leave.score.bias)

    def forward(self, tokens: Tensor) -> Tensor:
        h = self.embedding(tokens)
        everyone = torch.arange(tokens.shape[1], device=tokens.device).expand(tokens.shape)
        stays = torch.ones_like(h[..., :1])
        processed = [stays.mean()]
        for layer, block in enumerate(self.blocks):
            if layer:
                decision = self.exits[layer - 1](h)
                stays = stays * decision
                processed.append(stays.mean())
            if self.training:
                h = h + stays * block(h, everyone)
                continue
            most = int((stays != 0).sum(1).max())
            if most == 0:
                continue  # nobody is left for this block; the decisions are still asked for
            # the tokens that stay, in order; shorter rows are filled with tokens that left
            active = (stays.squeeze(-1) == 0).byte().sort(dim=1, stable=True).indices[:, :most]
            active = active.sort(dim=1).values
            index = active.unsqueeze(-1).expand(-1, -1, h.shape[-1])
            h = h.scatter_add(1, index, block(h, active) * stays.gather(1, active.unsqueeze(-1)))
        self.processed = torch.stack(processed).mean()
        return F.linear(self.norm(h), self.embedding.weight)

    @property
    def auxiliary(self) -> Tensor:
        return self.config.cost * (self.processed - self.config.depth).square()


def build(architecture: dict) -> EarlyExit:
    return EarlyExit(Config(**architecture))


def sites(model: EarlyExit) -> list[Site]:
    return [Decision(f"exits.{i}", i + 1) for i in range(len(model.exits))]
