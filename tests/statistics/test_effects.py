"""Penalties and retentions against their formulas, scipy and theory."""

import numpy as np
import pytest
from scipy import stats

from fca.statistics.effects import Bootstrap, effects, over_seeds, tidy


@pytest.fixture
def losses(rng):
    base = rng.normal(3, 0.5, size=40)
    return {
        "correct": base,
        "global_mean": base + rng.normal(1, 0.2, size=40),
        "layer_mean": base + rng.normal(0.1, 0.1, size=40),
    }


def test_effects_are_the_formulas(losses):
    table = effects(losses, np.arange(40), Bootstrap(500))
    gap = losses["global_mean"].mean() - losses["correct"].mean()
    assert table["layer_mean"]["penalty"].value == pytest.approx(
        (losses["layer_mean"] - losses["correct"]).mean()
    )
    expected = (losses["global_mean"].mean() - losses["layer_mean"].mean()) / gap
    assert table["layer_mean"]["retention"].value == pytest.approx(expected)
    assert table["correct"]["retention"].value == 1
    assert table["global_mean"]["retention"].value == 0
    assert table["correct"]["penalty"].low == table["correct"]["penalty"].high == 0


def test_intervals_agree_with_scipy_and_theory(losses):
    difference = losses["layer_mean"] - losses["correct"]
    found = effects(losses, np.arange(40), Bootstrap(4000))["layer_mean"]["penalty"]
    scipy = stats.bootstrap(
        (difference,), np.mean, n_resamples=4000, rng=np.random.default_rng(1)
    ).confidence_interval
    normal = stats.t.interval(0.95, 39, difference.mean(), stats.sem(difference))
    for low, high in (scipy, normal):
        assert found.low == pytest.approx(low, abs=0.01)
        assert found.high == pytest.approx(high, abs=0.01)


def test_the_unit_is_the_document(losses):
    """Ten copies of every input carry no more information than one."""
    copied = {name: np.repeat(values, 10) for name, values in losses.items()}
    once = effects(losses, np.arange(40), Bootstrap(2000))["layer_mean"]["penalty"]
    many = effects(copied, np.repeat(np.arange(40), 10), Bootstrap(2000))["layer_mean"]["penalty"]
    assert many.value == pytest.approx(once.value)
    assert many.high - many.low == pytest.approx(once.high - once.low, rel=0.05)


def test_retention_is_undefined_without_a_clear_gap(losses, rng):
    unclear = losses | {"global_mean": losses["correct"] + rng.normal(0, 1, size=40)}
    backwards = losses | {"global_mean": losses["correct"] - 1}
    without = {k: v for k, v in losses.items() if k != "global_mean"}
    for case in (unclear, backwards, without):
        table = effects(case, np.arange(40), Bootstrap(500))
        assert all(row["retention"].value is None for row in table.values())
        assert (tidy(table)["retention"] == "undefined").all()


def test_few_documents_give_defined_results(losses):
    one = {name: values[:1] for name, values in losses.items()}
    table = tidy(effects(one, np.array([0]), Bootstrap(200)))
    assert (table.loc[table["intervention"] != "correct", "penalty_low"] == "too few documents").all()
    assert not table.isna().any().any()
    equal = {name: np.full(5, 2.0) for name in losses}
    table = tidy(effects(equal, np.arange(5), Bootstrap(200)))
    assert (table["penalty"] == 0).all()
    assert not table.isna().any().any()


def test_over_seeds_is_the_t_interval():
    values = [1.0, 2.0, 4.0]
    found = over_seeds(values)
    low, high = stats.t.interval(0.95, 2, np.mean(values), stats.sem(values))
    assert (found["n"], found["mean"]) == (3, pytest.approx(np.mean(values)))
    assert found["sd"] == pytest.approx(np.std(values, ddof=1))
    assert (found["low"], found["high"]) == (pytest.approx(low), pytest.approx(high))
    assert over_seeds([1.0])["sd"] is None
