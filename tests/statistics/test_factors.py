"""Interactions, factorial effects and Shapley shares against planted values and all orders."""

from itertools import permutations

import numpy as np
import pytest

from fca.interventions.lattice import KEPT, REASSIGNED, static
from fca.statistics.effects import Losses
from fca.statistics.factors import factors, sinks
from fca.statistics.interactions import factorial, interactions, shapley
from fca.statistics.intervals import Bootstrap

COARSE = [
    "global_mean", "layer_mean", "token_mean", "layer_token_mean",
    "input_mean", "input_layer_mean", "input_token_mean", "correct",
]  # fmt: skip


def losses_of(cost, documents=64, noise=0.05, seed=3):
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
    base = rng.normal(3, 0.3, 64)
    losses = {"correct": base, "token_shuffle": base + 2, "token_shuffle_after_4": base + 0.5}
    table = sinks(Losses.of(losses, np.arange(64), Bootstrap(200)))
    row = table.set_index("intervention").loc["token_shuffle_after_4"]
    assert (row["first_tokens"], row["part"]) == (4, pytest.approx(1.5))
    assert row["share"] == pytest.approx(0.75)
    losses["token_shuffle"] = base
    table = sinks(Losses.of(losses, np.arange(64), Bootstrap(200)))
    assert table["share"].tolist() == ["undefined"]
