"""Factors broken or kept have canonical names."""

import numpy as np
import pytest

from fca.errors import FcaError, Undefined
from fca.interventions.assignments import Labels
from fca.interventions.draws import draw
from fca.interventions.lattice import KEPT, REASSIGNED, full, name, names, reassignment, static
from fca.interventions.profiles import profile


def test_names_are_methods_names():
    assert reassignment([]) == "correct"
    assert reassignment(["token", "input"]) == "cross_input+token_shuffle"
    assert reassignment(["layer", "token"], keep_first=4) == "token_shuffle_after_4+layer_shuffle"
    assert static([]) == "global_mean"
    assert static(["channel", "layer"]) == "layer_mean"
    assert static(["layer"]) == "layer_only_mean"
    assert static(["token", "channel", "layer"]) == "layer_token_mean"
    assert static(["input", "layer", "channel", "token"]) == "correct"
    assert name({"static": {"keep": ["input", "token"]}}) == "input_token_mean"
    assert name({"reassign": {"break": ["input"]}}) == "cross_input"


COARSE = [
    "global_mean", "layer_mean", "token_mean", "layer_token_mean",
    "input_mean", "input_layer_mean", "input_token_mean", "correct",
]  # fmt: skip


def test_lattices_hold_every_sensible_subset_once():
    assert len(REASSIGNED) == 2**3
    assert len(KEPT) == 2 * 2 * 3  # input or not, token or not, none, layer, layer with channel
    assert full()[0] == "correct"
    assert set(COARSE) <= set(full())
    assert names(["token_shuffle", {"reassign": {"break": ["token"]}}]) == ["correct", "token_shuffle"]
    assert set(names([], "full")) == set(full())


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ({"static": {"keep": ["channel"]}}, "channels lie within layers"),
        ({"static": {"keep": ["head"]}}, "'head'; possible: input, layer, channel, token"),
        ({"reassign": {"break": ["input"], "keep_first": 2}}, "so break token"),
    ],
)
def test_senseless_entries_are_refused(entry, message):
    with pytest.raises(FcaError, match=message):
        name(entry)


def test_keep_first_leaves_the_first_tokens_alone(rng):
    labels = Labels(np.arange(6), tokens=9, layers=np.arange(3))
    tokens = draw("token_shuffle_after_3", labels, seed=0).tokens
    assert (tokens[:, :3] == [0, 1, 2]).all()
    assert (np.sort(tokens[:, 3:], axis=1) == np.arange(3, 9)).all()
    assert (tokens[:, 3:] != np.arange(3, 9)).any()
    with pytest.raises(Undefined, match="at least two tokens"):
        draw("token_shuffle_after_8", labels, seed=0)
    with pytest.raises(FcaError, match="unknown intervention 'token_shuffle_after_'"):
        draw("token_shuffle_after_", labels, seed=0)


def test_layer_only_averages_over_a_layers_channels(rng):
    mean, layers = rng.normal(size=(4, 5)), np.array([0, 0, 1, 1, 1])
    found = profile("layer_only_token_mean", mean, layers)
    assert np.allclose(found[:, :2], mean[:, :2].mean(axis=1, keepdims=True))
    assert np.allclose(found[:, 2:], mean[:, 2:].mean(axis=1, keepdims=True))
    assert np.allclose(profile("layer_only_mean", mean, layers)[:, 0], mean[:, :2].mean())
    with pytest.raises(Undefined, match="single channel"):
        profile("layer_only_mean", mean, np.arange(5))
