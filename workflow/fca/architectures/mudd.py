"""In: token ids [batch, token]. Out: logits [batch, token, vocabulary]. MUDD connections.

MUDDPythia and MUDDFormer (Xiao et al. 2025, arXiv 2502.12170): after every layer a mixer emits,
per token, one weight per stream (query, key, value, residual) and source (embedding, layer 0,
..., the layer itself), and the next layer's streams are the weighted sums of the sources.
Module names follow the published checkpoints, except that each mixer holds its static bias.
"""

import re
from dataclasses import fields

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from fca.architectures.mudd_layers import STREAMS, Config, Layer
from fca.controllers.sites import Output, Site


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
