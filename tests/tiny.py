"""Tiny random models, corpora and audits; nothing here needs a network or more than a second."""

from pathlib import Path

import numpy as np
import torch
from torch import nn

from fca.architectures import dense, featuregate, mudd

ARCHITECTURE = {"vocabulary": 50, "length": 16, "layers": 3, "width": 16, "heads": 2}


def write_corpus(folder: Path) -> None:
    """Forty short documents of random words."""
    rng = np.random.default_rng(0)
    words = ["".join(chr(97 + c) for c in rng.integers(0, 26, 4)) for _ in range(30)]
    for i in range(40):
        (folder / f"{i}.txt").write_text(" ".join(rng.choice(words, 60)))


def build(kind: str, architecture: dict = ARCHITECTURE) -> nn.Module:
    """A model whose controllers depend on their input, as trained ones do."""
    torch.manual_seed(0)
    model = {"dense": dense, "featuregate": featuregate, "mudd": mudd}[kind].build(dict(architecture))
    for name, parameter in model.named_parameters():
        if "gate.out" in name or ".w2.weight" in name:
            nn.init.normal_(parameter, std=0.5)
    return model.eval().requires_grad_(False)


SIZES = {"layers": 3, "width": 16, "heads": 2}
TRAINING = {
    "steps": 12,
    "batch_size": 4,
    "learning_rate": 0.01,
    "warmup": 2,
    "weight_decay": 0.1,
    "precision": "float32",
}
INTERVENTIONS = (
    "correct",
    "cross_input",
    "token_shuffle",
    "layer_shuffle",
    "cross_input+token_shuffle",
    "global_mean",
    "layer_mean",
    "input_layer_mean",
)
