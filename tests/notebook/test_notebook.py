"""What a person imports as fca: an audit in a few lines."""

from types import SimpleNamespace

import numpy as np
import pytest
import torch
from torch import nn

import fca
from fca.architectures import featuregate
from fca.errors import FcaError


def test_bad_tokens_are_refused(featuregate_model):
    sites = featuregate.sites(featuregate_model)
    with pytest.raises(FcaError, match="different lengths"):
        fca.capture(featuregate_model, sites, [[1, 2, 3], [1, 2]])
    with pytest.raises(FcaError, match=r"integers \[input, token\]"):
        fca.capture(featuregate_model, sites, np.zeros((2, 4)))
    with pytest.raises(FcaError, match="no sites"):
        fca.capture(featuregate_model, [], np.zeros((2, 4), int))


def test_notebook_audit(featuregate_model, tokens):
    """The README's example, on a model of one's own."""
    sites = fca.find_sites(featuregate_model, "blocks.*.gate")
    recorded = fca.capture(featuregate_model, sites, tokens, batch_size=4)
    calibration = fca.capture(featuregate_model, sites, (tokens + 1) % 50, batch_size=4)
    changes = [f(recorded) for f in (fca.correct, fca.cross_input, fca.token_shuffle, fca.layer_shuffle)]
    changes += [f(calibration) for f in (fca.global_mean, fca.layer_mean)]
    losses = {
        c.intervention: float(fca.replay(featuregate_model, sites, tokens, c, batch_size=4)["nll"].mean())
        for c in changes
    }
    assert losses["correct"] == float(recorded["nll"].mean())
    assert len(set(losses.values())) == len(losses)
    assert recorded["coefficients"].shape == (10, 16, 3)
    featuregate_model.train()
    fca.capture(featuregate_model, sites, tokens)
    assert featuregate_model.training


def test_a_profile_is_refused_on_what_it_was_estimated_on(featuregate_model, tokens):
    sites = featuregate.sites(featuregate_model)
    record = fca.capture(featuregate_model, sites, tokens)
    other = fca.capture(featuregate_model, sites, np.vstack([(tokens[:4] + 1) % 50, tokens[7:8]]))
    for calibration, shared in ((record, 10), (other, 1)):
        with pytest.raises(
            FcaError, match=f"'layer_mean' was estimated on {shared} of the inputs.*oracle=True"
        ):
            fca.replay(featuregate_model, sites, tokens, fca.layer_mean(calibration))
    allowed = fca.static(record, "layer_mean", oracle=True)
    assert np.isfinite(fca.replay(featuregate_model, sites, tokens, allowed)["nll"]).all()
    # an oracle by name is one anyway, and a reassignment is no estimate
    for change in (fca.static(record, "input_layer_mean"), fca.cross_input(record)):
        fca.replay(featuregate_model, sites, tokens, change)


def test_a_profile_is_refused_on_a_document_that_it_was_estimated_on(featuregate_model, tokens):
    """Other windows of the same text, where the texts are named."""
    sites = featuregate.sites(featuregate_model)
    calibration = fca.capture(featuregate_model, sites, tokens[:5], documents=[1, 1, 2, 3, 4])
    profile = fca.layer_mean(calibration)
    fca.replay(featuregate_model, sites, tokens[5:], profile, documents=[5, 6, 7, 8, 9])
    with pytest.raises(FcaError, match="estimated on 2 of the documents"):
        fca.replay(featuregate_model, sites, tokens[5:], profile, documents=[5, 1, 1, 3, 9])


def test_a_profile_runs_in_the_batches_that_it_is_compared_in(featuregate_model, tokens):
    """Not in those of the calibration: batch composition changes results in the last digits."""
    sites = featuregate.sites(featuregate_model)
    calibration = fca.capture(featuregate_model, sites, (tokens + 1) % 50, batch_size=3)
    profile = fca.layer_mean(calibration)
    assert len(fca.replay(featuregate_model, sites, tokens, profile).logits_sha256) == 1
    assert len(fca.replay(featuregate_model, sites, tokens, profile, batch_size=4).logits_sha256) == 3


class Returns(nn.Module):
    """A model that returns its logits among other things."""

    def __init__(self, model, wrap):
        super().__init__()
        self.model, self.wrap = model, wrap

    def forward(self, tokens):
        return self.wrap(self.model(tokens))


@pytest.mark.parametrize(
    "wrap",
    [
        lambda x: (x, x.mean()),
        lambda x: (x.mean(), x),
        lambda x: (x, None),
        lambda x: {"logits": x, "hidden": x},
        lambda x: {"loss": x.mean(), "scores": x},
        lambda x: SimpleNamespace(logits=x),
    ],
    ids=["logits, loss", "loss, logits", "logits, None", "dict", "dict without the key", "attribute"],
)
def test_logits_are_found_in_what_a_model_returns(wrap, featuregate_model, tokens):
    sites = fca.find_sites(featuregate_model, "blocks.*.gate")
    bare = fca.capture(featuregate_model, sites, tokens)
    model = Returns(featuregate_model, wrap)
    found = fca.capture(model, fca.find_sites(model, "model.blocks.*.gate"), tokens)
    assert found.logits_sha256 == bare.logits_sha256


def test_a_return_without_clear_logits_is_refused(featuregate_model, tokens):
    model = Returns(featuregate_model, lambda x: (x, x))
    sites = fca.find_sites(model, "model.blocks.*.gate")
    with pytest.raises(FcaError, match=r"tensor \(10, 16, 50\), .*2 tensors could be the logits"):
        fca.capture(model, sites, tokens)
    with pytest.raises(FcaError, match="the model returns .str.*0 tensors"):
        fca.capture(Returns(featuregate_model, lambda x: "text"), sites, tokens)


class Lazy(nn.Module):
    """Keeps what its first pass makes, as models with lazy masks and tables do."""

    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(50, 8)
        self.gate = nn.Linear(8, 1)
        self.table = None

    def forward(self, tokens):
        h = self.embedding(tokens)
        if self.table is None:
            self.table = torch.ones(8) * 2.0
        return (self.gate(h) * h * self.table) @ self.embedding.weight.T


def test_a_model_can_be_trained_after_an_audit(tokens):
    model = Lazy()
    sites = fca.find_sites(model, "gate")
    record = fca.capture(model, sites, tokens)
    fca.replay(model, sites, tokens, fca.correct(record))
    model(torch.from_numpy(tokens)).sum().backward()
    assert model.embedding.weight.grad is not None


class Emits(nn.Module):
    """A model whose controller emits a number of some type."""

    def __init__(self, convert):
        super().__init__()
        self.embedding = nn.Embedding(50, 50)
        self.gate = Gate(convert)

    def forward(self, tokens):
        h = self.embedding(tokens)
        return h * self.gate(h).abs()


class Gate(nn.Module):
    def __init__(self, convert):
        super().__init__()
        self.convert = convert

    def forward(self, h):
        return self.convert(h[..., :1])


@pytest.mark.parametrize("convert", [lambda x: (3 * x).long(), lambda x: (x > 0).int()], ids=["long", "int"])
def test_a_mean_in_place_of_whole_numbers_is_refused(convert, tokens):
    model = Emits(convert)
    sites = fca.find_sites(model, "gate")
    record = fca.capture(model, sites, tokens)
    exact = fca.replay(model, sites, tokens, fca.correct(record))
    assert exact.logits_sha256 == record.logits_sha256
    fca.replay(model, sites, tokens, fca.token_shuffle(record))
    with pytest.raises(FcaError, match="whole numbers only.*use reassignments"):
        fca.replay(model, sites, tokens, fca.static(record, "layer_mean", oracle=True))


@pytest.mark.parametrize(
    ("convert", "name"),
    [
        (lambda x: x.double() / 3, "float64"),
        (lambda x: (x * 0 + 2**24 + 1).double().round().long() + 1, "int64"),
        (lambda x: torch.complex(x, x), "complex64"),
    ],
    ids=["float64", "large integers", "complex"],
)
def test_numbers_that_cannot_be_kept_exactly_are_refused(convert, name, tokens):
    model = Emits(convert)
    with pytest.raises(FcaError, match=f"'gate' emits {name} values that float32 does not hold"):
        fca.capture(model, fca.find_sites(model, "gate"), tokens)
