"""In: token ids [batch, token]. Out: logits [batch, token, vocabulary]. A static control.

ReZero (Bachlechner et al. 2020): every block's updates are multiplied by one learned parameter.
It scales residuals as a gate does, but is the same for every input: there is nothing to audit.
"""

import torch
from torch import Tensor, nn

from fca.architectures import dense
from fca.controllers.sites import Site


class ScaledBlock(dense.Block):
    """h + a attention(h), then h + a feed_forward(h), with one learned a per block."""

    def __init__(self, config: dense.Config):
        super().__init__(config)
        # ASSUME: a starts at 1, the dense model, so that all models here start alike.
        self.resweight = nn.Parameter(torch.ones(()))

    def forward(self, h: Tensor) -> Tensor:
        h = h + self.resweight * self.attention(self.attention_norm(h))
        return h + self.resweight * self.feed_forward(self.feed_forward_norm(h))


def build(architecture: dict) -> dense.Transformer:
    return dense.Transformer(dense.Config(**architecture), ScaledBlock)


def sites(model: dense.Transformer) -> list[Site]:
    """Parameters are no controller."""
    return []
