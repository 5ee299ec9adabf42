"""Playback is exact, disables the controllers and puts everything back."""

import numpy as np
import pytest
import torch
from tiny import build
from torch import nn

import fca
from fca.architectures import featuregate, mudd
from fca.controllers.forms import Form, from_channels, to_channels
from fca.controllers.sites import Output, Slice
from fca.errors import FcaError, ProofError
from fca.frozen.capture import Capture
from fca.frozen.loss import token_nll
from fca.frozen.passes import record, replay
from fca.frozen.playback import Playback

SITES = {"featuregate": featuregate.sites, "mudd": mudd.sites}


def play(model, sites, recorded, tokens, coefficients):
    return next(iter(replay(model, sites, recorded.forms, tokens, lambda i: coefficients[i], len(tokens))))


@pytest.mark.parametrize("kind", SITES)
def test_identity_replay_is_exact_and_runs_no_controller(kind, tokens):
    model = build(kind)
    sites = SITES[kind](model)
    live = list(record(model, sites, tokens, 4))
    coefficients = np.concatenate([b.coefficients for b in live])
    again = list(replay(model, sites, live[0].forms, tokens, lambda i: coefficients[i], 4))
    assert [b.logits_sha256 for b in again] == [b.logits_sha256 for b in live]
    assert all(np.array_equal(a.nll, b.nll) for a, b in zip(again, live, strict=True))
    assert again[-1].controller_runs == 0


@pytest.mark.parametrize("kind", SITES)
def test_other_coefficients_change_the_logits(kind, tokens):
    model = build(kind)
    sites = SITES[kind](model)
    live = next(iter(record(model, sites, tokens, 10)))
    other = play(model, sites, live, tokens, np.roll(live.coefficients, 1, axis=0))
    assert other.logits_sha256 != live.logits_sha256


def test_identity_is_exact_in_bfloat16(tokens):
    model = build("featuregate").bfloat16()
    sites = featuregate.sites(model)
    live = next(iter(record(model, sites, tokens, 10)))
    assert live.forms[0][0].dtype == "bfloat16"
    assert play(model, sites, live, tokens, live.coefficients).logits_sha256 == live.logits_sha256


def test_everything_is_put_back_even_after_an_error(featuregate_model, tokens):
    sites = featuregate.sites(featuregate_model)
    live = next(iter(record(featuregate_model, sites, tokens, 10)))
    with pytest.raises(RuntimeError, match="stop"), Playback(featuregate_model, sites, live.forms):
        assert "forward" in featuregate_model.blocks[0].gate.__dict__
        raise RuntimeError("stop")
    for module in featuregate_model.modules():
        assert "forward" not in module.__dict__
        assert not module._forward_hooks
        assert not module._forward_pre_hooks
    assert next(iter(record(featuregate_model, sites, tokens, 10))).logits_sha256 == live.logits_sha256


def test_a_forward_kept_on_the_instance_survives(featuregate_model, tokens):
    gate = featuregate_model.blocks[0].gate
    original = gate.forward
    gate.forward = lambda h: original(h)
    mine = gate.forward
    sites = featuregate.sites(featuregate_model)
    live = next(iter(record(featuregate_model, sites, tokens, 10)))
    play(featuregate_model, sites, live, tokens, live.coefficients)
    assert gate.forward is mine


class Sneaky(nn.Module):
    """Uses its controller's weight behind the module's back as well."""

    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(50, 8)
        self.gate = nn.Linear(8, 1)
        self.out = nn.Linear(8, 50)

    def forward(self, tokens):
        h = self.embedding(tokens)
        return self.out(self.gate(h) * h + self.gate.weight.sum())


def test_a_controller_used_behind_its_back_is_noticed(tokens):
    model = Sneaky().eval()
    sites = fca.find_sites(model, "gate")
    live = next(iter(record(model, sites, tokens, 10)))
    with pytest.raises(ProofError, match="a controller ran during playback"):
        play(model, sites, live, tokens, live.coefficients)


class Hidden(nn.Module):
    """The controller's weights are used in ways that no hook and no count of operations sees."""

    def __init__(self, way):
        super().__init__()
        self.embedding = nn.Embedding(50, 8)
        self.gate = nn.Linear(8, 1, bias=False)
        self.gate.register_buffer("scale", torch.full((8,), 0.5))
        self.way = way

    def forward(self, tokens):
        h = self.embedding(tokens)
        g = self.gate(h)
        if self.way == "list":
            g = g + torch.stack([self.gate.weight[0], self.gate.weight[0]])[0].sum()
        elif self.way == "einsum":
            g = g + torch.einsum("btd,cd->btc", [h, self.gate.weight])
        elif self.way == "buffer":
            g = g + (h * self.gate.scale).sum(-1, keepdim=True)
        elif self.way == "detached":
            g = g + h @ self.gate.weight.detach().T
        return (h * g) @ self.embedding.weight.T


@pytest.mark.parametrize("way", ["list", "einsum", "buffer", "detached", "none"])
def test_weights_that_are_used_unseen_are_noticed(way, tokens):
    model = Hidden(way).requires_grad_(False)
    before = {name: value.clone() for name, value in model.state_dict().items()}
    sites = [Output("gate", 0)]
    recorded = list(record(model, sites, tokens, 5))
    coefficients = np.concatenate([b.coefficients for b in recorded])
    passes = replay(model, sites, recorded[0].forms, tokens, lambda inputs: coefficients[inputs], 5)
    if way == "none":
        assert [b.logits_sha256 for b in passes] == [b.logits_sha256 for b in recorded]
    else:
        with pytest.raises(ProofError, match="a controller ran during playback|weights, NaN meanwhile"):
            list(passes)
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())


class Twice(nn.Module):
    """Calls its gate twice a pass, or three times when told so."""

    def __init__(self, calls=2):
        super().__init__()
        self.embedding, self.gate, self.unused = nn.Embedding(50, 8), nn.Linear(8, 1), nn.Linear(8, 1)
        self.out, self.calls = nn.Linear(8, 50), calls

    def forward(self, tokens):
        h = self.embedding(tokens)
        for _ in range(self.calls):
            h = h + self.gate(h)
        return self.out(h)


def test_a_site_called_twice_keeps_both_calls(tokens):
    model = Twice().eval()
    sites = fca.find_sites(model, "gate")
    recorded = fca.capture(model, sites, tokens)
    assert recorded["call"].values.tolist() == [0, 1]
    replayed = fca.replay(model, sites, tokens, fca.correct(recorded))
    assert replayed.attrs["logits_sha256"] == recorded.attrs["logits_sha256"]
    model.calls = 3
    with pytest.raises(ProofError, match="more often"):
        fca.replay(model, sites, tokens, fca.correct(recorded))
    model.calls = 1
    with pytest.raises(ProofError, match="not played back"):
        fca.replay(model, sites, tokens, fca.correct(recorded))


def test_errors_name_the_site(tokens, featuregate_model):
    model = Twice().eval()
    with pytest.raises(FcaError, match="'unused' was never called"):
        fca.capture(model, fca.find_sites(model, "unused"), tokens)
    with pytest.raises(FcaError, match=r"matches no module .*did you mean 'blocks\.\*\.gate'"):
        fca.find_sites(featuregate_model, "blocks.*.gates")
    with (
        pytest.raises(FcaError, match="no module 'blocks.9.gate'"),
        Capture(featuregate_model, [Output("blocks.9.gate", 9)]),
    ):
        pass
    nn.init.constant_(model.gate.weight, float("nan"))
    with pytest.raises(FcaError, match="'gate' emitted NaN"):
        fca.capture(model, fca.find_sites(model, "gate"), tokens)


def test_a_pattern_stays_within_a_part(featuregate_model):
    assert [s.path for s in fca.find_sites(featuregate_model, "blocks.*.gate")] == [
        f"blocks.{i}.gate" for i in range(3)
    ]
    assert [s.layer for s in fca.find_sites(featuregate_model, "blocks.*.gate")] == [0, 1, 2]


def test_slice_replaces_only_its_positions(tokens):
    model = Sneaky().eval()
    live = model.embedding(torch.as_tensor(tokens)).detach().numpy()
    sites = [Slice("embedding", 0, positions=(1, 3))]
    recorded = fca.capture(model, sites, tokens)
    assert np.array_equal(recorded["coefficients"].values, live[..., [1, 3]])
    replayed = fca.replay(model, sites, tokens, fca.correct(recorded))
    assert replayed.attrs["logits_sha256"] == recorded.attrs["logits_sha256"]
    assert replayed.attrs["still_running"] == ["embedding"]


@pytest.mark.parametrize("shape", [(2, 3, 4), (2, 3, 4, 5), (6, 4), (2, 4, 1, 1)])
def test_forms_round_trip(shape):
    output = torch.randn(shape)
    channels, form = to_channels(output, 2, 3, "x")
    assert channels.shape == (2, 1 if form == Form("none", (4, 1, 1), "float32") else 3, form.channels)
    assert torch.equal(from_channels(channels, form), output)


def test_an_output_that_fits_nothing_is_refused():
    with pytest.raises(FcaError, match=r"'x': output of shape \(5, 4\) fits neither"):
        to_channels(torch.zeros(5, 4), 2, 3, "x")


def test_token_nll_is_cross_entropy_in_any_slicing(rng):
    logits, tokens = torch.randn(3, 7, 11), torch.randint(0, 11, (3, 7))
    expected = -torch.log_softmax(logits[:, :-1], -1).gather(-1, tokens[:, 1:, None])[..., 0]
    for rows in (1, 4, 1000):
        assert torch.allclose(token_nll(logits, tokens, rows), expected, atol=1e-6)
