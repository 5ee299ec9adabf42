"""In: token ids [batch, token]. Out: logits [batch, token, vocabulary]. Soft residual gates.

FeatureGate is the dense Transformer with one coefficient per layer and token that multiplies
both residual updates of the block. The gate is soft: no block is ever skipped.

ASSUME: the paper's text at hand does not give the gate's form; it is taken to be
g = 2 sigmoid(w2 . gelu(W1 features) + b) with w2 = 0 and b = 0 at the start, so that g = 1 and
training begins at the dense model.
"""

from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from fca.architectures import dense
from fca.controllers.sites import Output, Site


@dataclass(frozen=True)
class Config(dense.Config):
    """A dense Transformer's sizes and what its controllers see."""

    features: Literal["statistics", "residual"] = "statistics"
    gate_width: int = 32  # ASSUME: hidden units of the gate; small beside the block
    # g stays within 1 - strength and 1 + strength. A weak gate is a control: its coefficients can
    # vary with the input as much as they like, in shares of variance, and hardly be needed.
    strength: float = 1.0


def residual_features(h: Tensor) -> Tensor:
    """The residual itself, each token scaled to RMS 1: [batch, token, width].

    ASSUME: "normalised features" read as an RMS norm without a learned scale.
    """
    return F.rms_norm(h, (h.shape[-1],))


def statistics_features(h: Tensor) -> Tensor:
    """Four scalars of each token's residual: [batch, token, 4].

    ASSUME: log RMS, mean over RMS, largest magnitude over RMS, log kurtosis about zero; they
    tell the gate how large, shifted, peaked and heavy-tailed the residual is, not its content.
    """
    square = h.square().mean(-1).clamp_min(1e-12)  # clamped: an all-zero residual has no shape
    rms = square.sqrt()
    kurtosis = h.pow(4).mean(-1).clamp_min(1e-24) / square.square()
    return torch.stack([rms.log(), h.mean(-1) / rms, h.abs().amax(-1) / rms, kurtosis.log()], dim=-1)


class Gate(nn.Module):
    """The controller: one coefficient per token in (1 - strength, 1 + strength), [batch, token, 1]."""

    def __init__(self, config: Config):
        super().__init__()
        self.features = {"statistics": statistics_features, "residual": residual_features}[config.features]
        inputs = 4 if config.features == "statistics" else config.width
        self.hidden = nn.Linear(inputs, config.gate_width)
        self.out = nn.Linear(config.gate_width, 1)
        self.strength = config.strength

    def forward(self, h: Tensor) -> Tensor:
        g = 2 * torch.sigmoid(self.out(F.gelu(self.hidden(self.features(h)))))
        return 1 + self.strength * (g - 1)


class GatedBlock(dense.Block):
    """h + g attention(h), then h + g feed_forward(h), with the same g."""

    def __init__(self, config: Config):
        super().__init__(config)
        self.gate = Gate(config)

    def forward(self, h: Tensor) -> Tensor:
        g = self.gate(h)  # [batch, token, 1], read before the block changes the residual
        h = h + g * self.attention(self.attention_norm(h))
        return h + g * self.feed_forward(self.feed_forward_norm(h))


def build(architecture: dict) -> dense.Transformer:
    model = dense.Transformer(Config(**architecture), GatedBlock)
    for block in model.blocks:
        assert isinstance(block, GatedBlock)
        nn.init.kaiming_uniform_(block.gate.hidden.weight, a=5**0.5)
        nn.init.zeros_(block.gate.out.weight)
        nn.init.zeros_(block.gate.out.bias)
    return model


def sites(model: dense.Transformer) -> list[Site]:
    return [Output(path=f"blocks.{layer}.gate", layer=layer) for layer in range(len(model.blocks))]
