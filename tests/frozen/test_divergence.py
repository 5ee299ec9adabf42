"""Divergences of predictions against scipy, and their stored summaries."""

import numpy as np
import pytest
import torch
from scipy.special import rel_entr, softmax
from tiny import build

from fca.architectures import featuregate, mudd
from fca.errors import ProofError
from fca.frozen.divergence import compare, divergences
from fca.frozen.passes import record

SITES = {"featuregate": featuregate.sites, "mudd": mudd.sites}


def test_measures_are_their_definitions(rng):
    a, b = rng.normal(size=(2, 7, 11))
    p, q = softmax(a, axis=-1), softmax(b, axis=-1)
    found = compare(torch.tensor(a), torch.tensor(b))
    assert found["kl"] == pytest.approx(rel_entr(p, q).sum(axis=-1).mean(), rel=1e-5)
    assert found["total_variation"] == pytest.approx(np.abs(p - q).sum(axis=-1).mean() / 2, rel=1e-5)
    assert found["top1_agreement"] == (p.argmax(axis=-1) == q.argmax(axis=-1)).mean()


@pytest.mark.parametrize("kind", SITES)
def test_the_untouched_replay_predicts_the_same_and_another_does_not(kind, tokens):
    model = build(kind)
    sites = SITES[kind](model)
    live = list(record(model, sites, tokens, 4))
    own = np.concatenate([b.coefficients for b in live])
    other = np.roll(own, 1, axis=0)
    same = divergences(model, sites, live[0].forms, tokens, lambda i: own[i], 4, 6)
    assert {name: values.tolist() for name, values in same.items()} == {
        "kl": [0.0] * 6, "total_variation": [0.0] * 6, "top1_agreement": [1.0] * 6,
    }  # fmt: skip
    apart = divergences(model, sites, live[0].forms, tokens, lambda i: other[i], 4, 99)
    assert all(len(values) == len(tokens) for values in apart.values())
    assert (apart["kl"] > 0).all()
    assert (apart["total_variation"] > 0).all()
    assert all(v.shape == (0,) for v in divergences(model, sites, [], tokens, None, 4, 0).values())


def test_a_controller_that_runs_is_noticed(featuregate_model, tokens):
    sites = featuregate.sites(featuregate_model)
    live = next(iter(record(featuregate_model, sites, tokens, 10)))
    norm = featuregate_model.norm
    inner = norm.forward
    norm.forward = lambda h: inner(h) + 0 * featuregate_model.blocks[0].gate.out.weight.sum()
    with pytest.raises(ProofError, match="a controller ran"):
        divergences(featuregate_model, sites, live.forms, tokens, lambda i: live.coefficients[i], 10, 3)
