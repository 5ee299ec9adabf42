"""Models that really execute less, and a static control."""

from pathlib import Path

import numpy as np
import pytest
import torch
from tiny import ARCHITECTURE
from torch import nn

import fca
from fca.machine.counting import blocks_of, counted_blocks, experts_executed, flops
from fca.models import kinds

ROOT = Path(__file__).resolve().parents[2]

SKIPPING = ("moe", "mixture_of_depths", "early_exit")


def build(kind: str, **options) -> nn.Module:
    torch.manual_seed(0)
    model = kinds.module(kind).build({**ARCHITECTURE, "layers": 4, **options})
    for name, parameter in model.named_parameters():
        if "score.weight" in name or "choice.weight" in name:
            nn.init.normal_(parameter, std=3.0)
        elif "score.bias" in name:
            nn.init.zeros_(parameter)
    return model.eval()


@pytest.fixture(params=SKIPPING)
def skipping(request):
    return request.param, build(request.param)


def test_identity_and_effect(skipping, tokens):
    kind, model = skipping
    sites = kinds.module(kind).sites(model)
    record = fca.capture(model, sites, tokens, batch_size=5)
    same = fca.replay(model, sites, tokens, fca.correct(record))
    assert same.attrs["logits_sha256"] == record.attrs["logits_sha256"]
    other = fca.replay(model, sites, tokens, fca.cross_input(record))
    assert other.attrs["logits_sha256"] != record.attrs["logits_sha256"]


def test_training_and_use_compute_the_same(skipping, tokens):
    _, model = skipping
    ids = torch.from_numpy(tokens)
    with torch.no_grad():
        trained, used = model.train()(ids), model.eval()(ids)
    assert torch.allclose(trained, used, atol=1e-5)


def test_controllers_learn(skipping, tokens):
    _, model = skipping
    model.train()
    logits = model(torch.from_numpy(tokens))
    (logits.square().mean() + getattr(model, "auxiliary", 0.0)).backward()
    controllers = [p for n, p in model.named_parameters() if "score.weight" in n or "choice.weight" in n]
    assert controllers
    assert all(p.grad is not None and p.grad.abs().sum() > 0 for p in controllers)


def blocks(model, tokens):
    with torch.no_grad(), counted_blocks(model) as counted:
        model(torch.from_numpy(tokens))
    return {path: count / tokens.size for path, count in counted.items()}


def test_mixture_of_depths_runs_its_share(tokens):
    counted = blocks(build("mixture_of_depths", share=0.25), tokens)
    assert counted == {"blocks.0": 1.0, "blocks.1.block": 0.25, "blocks.2": 1.0, "blocks.3.block": 0.25}


def test_early_exit_runs_the_tokens_that_stay(tokens):
    model = build("early_exit")
    one = tokens[:1]  # alone, a sequence is not filled up to a longer one
    decisions = fca.capture(model, kinds.module("early_exit").sites(model), one)["coefficients"].values[0]
    stays = np.concatenate([np.ones((16, 1)), np.cumprod(decisions, axis=1)], axis=1)
    assert list(blocks(model, one).values()) == stays.mean(axis=0).tolist()
    assert 0 < stays[:, -1].sum() < 16


def test_tokens_that_left_keep_their_state(tokens):
    model = build("early_exit")
    sites = kinds.module("early_exit").sites(model)
    record = fca.capture(model, sites, tokens)
    nobody = fca.correct(record) * 0
    nobody.attrs = fca.correct(record).attrs
    left = fca.replay(model, sites, tokens, nobody)
    ids = torch.from_numpy(tokens)
    with torch.no_grad():
        h = model.embedding(ids)
        everyone = torch.arange(16).expand(ids.shape)
        h = h + model.blocks[0](h, everyone)
        logits = nn.functional.linear(model.norm(h), model.embedding.weight)
    expected = nn.functional.cross_entropy(logits[:, :-1].flatten(0, 1), ids[:, 1:].flatten())
    assert float(left["nll"].mean()) == pytest.approx(float(expected), abs=1e-5)


@pytest.mark.parametrize(("k", "experts"), [(1, 4), (2, 6)])
def test_moe_runs_k_experts(k, experts, tokens):
    model = build("moe", k=k, experts=experts)
    with torch.no_grad():
        counted = flops(lambda: model(torch.from_numpy(tokens)))
    assert experts_executed(model, counted, tokens.size) == (experts, pytest.approx(k))
    if k > 1:
        record = fca.capture(model, kinds.module("moe").sites(model), tokens)
        weights = record["coefficients"].values.reshape(-1, experts)
        assert np.allclose(weights.sum(-1), 1, atol=1e-6)


def test_static_profiles_stay_routing(tokens):
    """A mean over tokens is played back as a fixed choice, so as much runs as live."""
    from fca.frozen.passes import Form
    from fca.frozen.playback import Playback

    model = build("mixture_of_depths", share=0.5)
    sites = kinds.module("mixture_of_depths").sites(model)
    record = fca.capture(model, sites, tokens)
    mean = np.broadcast_to(fca.static(record, "token_mean").values, record["coefficients"].shape)
    forms = [[Form(f["token"], f["shape"], f["dtype"]) for f in calls] for calls in record.attrs["forms"]]
    with torch.no_grad(), Playback(model, sites, forms) as playback:
        playback.load(torch.from_numpy(np.ascontiguousarray(mean, dtype=np.float32)))
        assert list(blocks(model, tokens).values()) == [1.0, 0.5, 1.0, 0.5]


def test_blocks_of_any_module():
    assert blocks_of(nn.Linear(2, 2)) == [""]
    small, large = nn.ModuleList([nn.Linear(2, 2)] * 3), nn.ModuleList([nn.Linear(20, 20), nn.Linear(20, 20)])
    assert blocks_of(nn.ModuleDict({"small": small, "large": large})) == ["large.0", "large.1"]
