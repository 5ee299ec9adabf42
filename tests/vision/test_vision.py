"""Gates of timm's vision models: exact, isolated, effective. Run by `make test-vision`."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import timm
import torch
from torch import nn

import fca
from fca.controllers.families import known_sites, static_parameters

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "vision.py"


def build(name: str) -> nn.Module:
    """Random weights; residual branches, which start at zero, are opened."""
    torch.manual_seed(0)
    model = timm.create_model(name, pretrained=False, num_classes=10).eval().requires_grad_(False)
    for module in model.modules():
        if isinstance(module, nn.BatchNorm2d):
            nn.init.ones_(module.weight)
    return model


@pytest.mark.parametrize(
    ("name", "family"),
    [
        ("seresnet18", "squeeze_excite"),
        ("efficientnet_b0", "squeeze_excite"),
        ("mobilenetv3_small_050", "squeeze_excite"),
        ("efficientnet_cc_b0_4e", "cond_conv"),
        ("skresnet18", "selective_kernel"),
        ("resnest14d", "selective_kernel"),
    ],
)
def test_vision_family(name, family):
    model = build(name)
    images = torch.randn(4, 3, 64, 64)
    sites = known_sites(model)[family]
    record = fca.capture(model, sites, images, batch_size=2)
    assert record.sizes["token"] == 1
    assert record["layer"].values.max() == len({s.layer for s in sites}) - 1 > 0
    same = fca.replay(model, sites, images, fca.correct(record))
    assert same.attrs["logits_sha256"] == record.attrs["logits_sha256"]
    assert same.attrs["controller_runs"] == 0
    assert np.abs(fca.divergence(record, same)).max() < 1e-6
    other = fca.replay(model, sites, images, fca.cross_input(record))
    assert other.attrs["logits_sha256"] != record.attrs["logits_sha256"]
    with pytest.raises(fca.Undefined, match="at least two tokens"):
        fca.token_shuffle(record)


def test_divergence_is_zero_only_for_equal_outputs():
    model = build("seresnet18")
    images = torch.randn(4, 3, 64, 64)
    sites = known_sites(model)["squeeze_excite"]
    record = fca.capture(model, sites, images)
    zero = fca.correct(record) * 0
    zero.attrs = fca.correct(record).attrs
    assert (fca.divergence(record, fca.replay(model, sites, images, zero)) > 0).all()


def test_layer_scale_is_static():
    model = timm.create_model("convnext_atto", pretrained=False)
    assert any("gamma" in name for name in static_parameters(model))
    assert known_sites(model) == {}


def test_the_example_runs():
    done = subprocess.run([sys.executable, EXAMPLE, "seresnet18"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "cross_input" in done.stdout
