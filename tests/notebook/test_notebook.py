"""What a person imports as fca: an audit in a few lines."""

import numpy as np
import pytest

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
    losses = {
        f.__name__: float(fca.replay(featuregate_model, sites, tokens, f(recorded))["nll"].mean())
        for f in (
            fca.correct,
            fca.cross_input,
            fca.token_shuffle,
            fca.layer_shuffle,
            fca.global_mean,
            fca.layer_mean,
        )
    }
    assert losses["correct"] == float(recorded["nll"].mean())
    assert len(set(losses.values())) == len(losses)
    assert recorded["coefficients"].shape == (10, 16, 3)
    featuregate_model.train()
    fca.capture(featuregate_model, sites, tokens)
    assert featuregate_model.training
