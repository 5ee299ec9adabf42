"""Names from factors, and the laws of interactions and Shapley shares."""

from itertools import permutations

import numpy as np
import pytest

from fca.arithmetic.effects import Losses
from fca.arithmetic.factors import factors, sinks
from fca.arithmetic.interactions import factorial, interactions, shapley
from fca.arithmetic.intervals import Bootstrap
from fca.arithmetic.interventions import Labels, draw
from fca.arithmetic.lattice import KEPT, REASSIGNED, full, name, names, reassignment, static
from fca.arithmetic.profiles import profile
from fca.errors import FcaError, Undefined

COARSE = [
    "global_mean", "layer_mean", "token_mean", "layer_token_mean",
    "input_mean", "input_layer_mean", "input_token_mean", "correct",
]  # fmt: skip


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


def losses_of(cost, documents=30, noise=0.05, seed=3):
    """Losses [input] of every lattice member: cost(intact factors) plus noise shared by none."""
    rng = np.random.default_rng(seed)
    base = rng.normal(3, 0.3, documents)
    intact = {n: frozenset(set(["input", "token", "layer"]) - b) for n, b in REASSIGNED.items()}
    kept = {n: k for n, k in KEPT.items() if n in COARSE}
    found = {n: base + cost(s, n) + rng.normal(0, noise, documents) for n, s in (intact | kept).items()}
    return Losses.of(found, np.arange(documents), Bootstrap(500))


def additive(present, _):
    return sum(v for f, v in {"input": 0.3, "token": 0.2, "layer": 0.5}.items() if f not in present)


def test_interactions_vanish_for_additive_losses_and_shares_are_the_parts():
    table = factors(losses_of(additive, noise=0.0)).set_index(["what", "term"])
    for terms in ("input:token", "input:layer", "layer:token", "input:layer:token"):
        assert table.loc[("interaction", terms), "effect"] == pytest.approx(0, abs=1e-12)
        assert table.loc[("factorial", terms), "effect"] == pytest.approx(0, abs=1e-12)
    for factor, part in {"input": 0.3, "token": 0.2, "layer": 0.5}.items():
        assert table.loc[("factorial", factor), "effect"] == pytest.approx(part)
        assert table.loc[("shapley", factor), "effect"] == pytest.approx(part)
        assert table.loc[("shapley", factor), "share"] == pytest.approx(part)


def test_planted_interactions_are_recovered():
    def planted(present, which):
        both = {"input", "token"}.isdisjoint(present) and which in REASSIGNED
        return additive(present, which) + 0.4 * both

    table = factors(losses_of(planted)).set_index(["what", "term"])
    found = table.loc[("interaction", "input:token")]
    assert found["effect_low"] < 0.4 < found["effect_high"]
    assert found["effect_high"] - found["effect_low"] < 0.2
    none = table.loc[("interaction", "layer:token")]
    assert none["effect_low"] < 0 < none["effect_high"]
    # two-level factorial: half of the excess goes to the interaction, half to each main effect
    assert table.loc[("factorial", "input:token"), "effect"] == pytest.approx(0.2, abs=0.05)
    assert table.loc[("factorial", "input"), "effect"] == pytest.approx(0.5, abs=0.05)


@pytest.mark.parametrize("available", [COARSE, list(KEPT)], ids=["coarse", "nested"])
def test_shapley_shares_add_up_to_the_gap(available, rng):
    loss = {n: rng.normal() for n in available}
    weights = shapley(available)
    assert set(weights) == ({"input", "layer", "token"} | ({"channel"} if len(available) > 8 else set()))
    total = sum(w * loss[n] for share in weights.values() for n, w in share.items())
    assert total == pytest.approx(loss["global_mean"] - loss["correct"])


def test_shapley_shares_are_the_mean_over_orders(rng):
    """Independent derivation: walk through all orders of keeping the factors, one by one."""
    loss = {n: rng.normal() for n in KEPT}
    expected = dict.fromkeys(("input", "layer", "channel", "token"), 0.0)
    orders = [o for o in permutations(expected) if o.index("layer") < o.index("channel")]
    for order in orders:
        kept = set()
        for factor in order:
            before = loss[static(kept)]
            kept.add(factor)
            expected[factor] += (before - loss[static(kept)]) / len(orders)
    found = {f: sum(w * loss[n] for n, w in share.items()) for f, share in shapley(KEPT).items()}
    assert found == pytest.approx(expected)


def test_what_is_not_measured_is_absent():
    assert shapley(["global_mean", "layer_mean", "correct"]) == {}
    assert interactions(["correct", "cross_input", "token_shuffle"]) == {}
    pair = ["correct", "cross_input", "token_shuffle", "cross_input+token_shuffle"]
    assert set(interactions(pair)) == {"input:token"}
    assert set(factorial(pair)) == {"input", "token", "input:token"}
    assert interactions(pair)["input:token"] == {
        "correct": 1, "cross_input": -1, "token_shuffle": -1, "cross_input+token_shuffle": 1,
    }  # fmt: skip


def test_the_first_tokens_part_of_a_shuffle(rng):
    base = rng.normal(3, 0.3, 30)
    losses = {"correct": base, "token_shuffle": base + 2, "token_shuffle_after_4": base + 0.5}
    table = sinks(Losses.of(losses, np.arange(30), Bootstrap(200)))
    row = table.set_index("intervention").loc["token_shuffle_after_4"]
    assert (row["first_tokens"], row["part"]) == (4, pytest.approx(1.5))
    assert row["share"] == pytest.approx(0.75)
    losses["token_shuffle"] = base
    table = sinks(Losses.of(losses, np.arange(30), Bootstrap(200)))
    assert table["share"].tolist() == ["undefined"]
