"""Layers and modules from dotted paths."""

import pytest

from fca.controllers.paths import layers_of


@pytest.mark.parametrize(
    ("paths", "layers"),
    [
        (["model.layers.1.mlp.gate", "model.layers.3.mlp.gate"], [1, 3]),
        (["layers.0.attention.router", "layers.0.mlp.router", "layers.1.mlp.router"], [0, 0, 1]),
        (["mixers.0", "mixers.1"], [0, 1]),
        (["layer1.0.se.gate", "layer1.1.se.gate", "layer2.0.se.gate"], [0, 1, 2]),
        (["blocks.0.0.se", "blocks.1.0.se", "blocks.1.1.se"], [0, 1, 2]),
        (["encoder.block.1.layer.1.router", "decoder.block.1.layer.2.router"], [0, 1]),
        (["gate"], [0]),
        (["early.gate", "late.gate"], [0, 1]),
        ([], []),
    ],
)
def test_layers_of(paths, layers):
    assert layers_of(paths) == layers
