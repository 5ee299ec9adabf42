"""A model of one's own: a convolutional byte model whose layers are gated per token.

`make` is what the audit calls; it returns any torch module that maps token ids to logits.
"""

import torch
from torch import Tensor, nn
from torch.nn import functional as F


class GatedLayer(nn.Module):
    """Looks at the last few tokens; a gate per token decides how much of that is added."""

    def __init__(self, width: int):
        super().__init__()
        self.mix = nn.Conv1d(width, width, kernel_size=4)
        self.gate = nn.Sequential(nn.Linear(width, 1), nn.Sigmoid())

    def forward(self, h: Tensor) -> Tensor:  # [batch, token, width]
        past = F.pad(h.transpose(1, 2), (3, 0))  # causal
        return h + self.gate(h) * torch.tanh(self.mix(past)).transpose(1, 2)


class MyModel(nn.Module):
    """Embedding, gated layers, output."""

    def __init__(self, width: int = 32, layers: int = 3):
        super().__init__()
        self.embedding = nn.Embedding(256, width)
        self.layers = nn.ModuleList(GatedLayer(width) for _ in range(layers))
        self.output = nn.Linear(width, 256)

    def forward(self, tokens: Tensor) -> Tensor:
        h = self.embedding(tokens)
        for layer in self.layers:
            h = layer(h)
        return self.output(h)


def make() -> nn.Module:
    """Here with random weights; load yours instead."""
    torch.manual_seed(0)
    return MyModel()
