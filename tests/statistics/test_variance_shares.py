"""Intervals of variance shares, intraclass correlations and what profiles capture out of sample."""

import numpy as np
import pytest

from fca.interventions.profiles import ORACLES, oracle, profile
from fca.statistics.intervals import Bootstrap
from fca.statistics.variance import decompose
from fca.statistics.variance_shares import ALL, captured, intraclass, missed, variance_shares

LAYERS = np.array([0, 0, 1, 1, 1])


def draw(rng, inputs=24, tokens=10, of_input=1.0, of_token=0.5, rest=0.3, coefficients=5):
    """Coefficients with planted standard deviations of input, token and rest."""
    return (
        2
        + np.arange(coefficients)
        + of_input * rng.normal(size=(inputs, 1, coefficients))
        + of_token * rng.normal(size=(1, tokens, coefficients))
        + rest * rng.normal(size=(inputs, tokens, coefficients))
    )


def both(values, layers=LAYERS):
    decomposition = decompose([values[:5], values[5:]], layers)
    return decomposition, decomposition.contributions(values)


def test_contributions_add_up_to_the_sums_of_squares(rng):
    values = draw(rng)
    decomposition, parts = both(values)
    table = variance_shares(decomposition, parts, np.arange(24), Bootstrap(200))
    assert np.allclose(table["share"], decomposition.table()["share"])
    total = (parts["channel", True, True] - parts["", False, False]).sum()
    assert total == pytest.approx(((values - values.mean()) ** 2).sum())
    assert (table["share_low"] <= table["share"] + 1e-12).all()
    assert (table["share"] <= table["share_high"] + 1e-12).all()


def test_errors_of_shares_are_those_of_leaving_out_one_input(rng):
    """Independent derivation: the jackknife, decomposing the array anew without each input."""
    values = draw(rng, inputs=60)
    decomposition, parts = both(values)
    table = variance_shares(decomposition, parts, np.arange(60), Bootstrap(4000)).set_index("term")
    without = [
        decompose([np.delete(values, i, axis=0)], LAYERS).table().set_index("term")["share"]
        for i in range(60)
    ]
    for term in ("layer", "input", "channel:input", "layer:input:token"):
        left_out = np.array([share[term] for share in without])
        error = np.sqrt(59 / 60 * np.square(left_out - left_out.mean()).sum())
        width = table.loc[term, "share_high"] - table.loc[term, "share_low"]
        assert width == pytest.approx(2 * 1.96 * error, rel=0.25)


@pytest.mark.slow
def test_shares_cover_the_truth():
    """Inputs drawn at random, tokens and coefficients fixed; truth from very many inputs."""
    rng = np.random.default_rng(2)
    fixed = np.arange(5) + 0.5 * rng.normal(size=(1, 6, 5))

    def sample(n):
        return fixed + rng.normal(size=(n, 1, 5)) + 0.3 * rng.normal(size=(n, 6, 5))

    truth = decompose([sample(20000)], LAYERS).table().set_index("term")["share"]
    hits = dict.fromkeys(("layer", "channel:input"), 0)
    for _ in range(500):
        values = sample(40)
        decomposition = decompose([values], LAYERS)
        table = variance_shares(
            decomposition, decomposition.contributions(values), np.arange(40), Bootstrap(500)
        )
        for term in hits:
            row = table.set_index("term").loc[term]
            hits[term] += row["share_low"] <= truth[term] <= row["share_high"]
    assert all(0.91 <= h / 500 <= 0.98 for h in hits.values()), hits


def test_intraclass_correlations_recover_planted_components(rng):
    found = intraclass(*both(draw(rng, inputs=400, tokens=200)), np.arange(400), Bootstrap(200))
    total = 1.0**2 + 0.5**2 + 0.3**2
    icc = found.set_index("factor")["icc"]
    assert icc["input"] == pytest.approx(1.0 / total, abs=0.03)
    assert icc["token"] == pytest.approx(0.25 / total, abs=0.03)


def test_intraclass_correlation_from_mean_squares(rng):
    """One coefficient: the textbook's two-way mean squares."""
    x = draw(rng, inputs=12, tokens=7, coefficients=1)[..., 0]
    rows, columns = x.mean(axis=1), x.mean(axis=0)
    between = 7 * rows.var(ddof=1)
    positions = 12 * columns.var(ddof=1)
    left = ((x - rows[:, None] - columns + x.mean()) ** 2).sum() / (11 * 6)
    components = np.array([(between - left) / 7, (positions - left) / 12, left])
    found = intraclass(*both(x[..., None], [0]), np.arange(12), Bootstrap(200)).set_index("factor")["icc"]
    assert found["input"] == pytest.approx(components[0] / components.sum())
    assert found["token"] == pytest.approx(components[1] / components.sum())


def test_captured_variance_is_one_minus_the_relative_error(rng):
    values, mean = draw(rng), draw(rng).mean(axis=0)
    table = captured(missed(values, mean, LAYERS), np.arange(24), Bootstrap(200)).set_index("profile")
    worst = np.square(values - mean.mean()).sum()
    for name in ALL:
        guess = oracle(name, values, LAYERS) if name in ORACLES else profile(name, mean, LAYERS)
        expected = 1 - np.square(values - guess).sum() / worst
        assert table.loc[name, "captured"] == pytest.approx(expected)
    assert table.loc["global_mean", "captured"] == 0
    assert table.loc["layer_mean", "captured_low"] < table.loc["layer_mean", "captured"] < 1


@pytest.mark.parametrize(
    "values",
    [
        np.full((3, 4, 2), 0.1),
        np.ones((1, 4, 2)),
        np.arange(8.0).reshape(1, 4, 2),
        np.arange(6.0).reshape(3, 1, 2),
    ],
    ids=["constant", "one constant input", "one input", "one token"],
)
def test_degenerate_arrays_are_defined_or_undefined(values):
    decomposition = decompose([values], [0, 1])
    parts, documents = decomposition.contributions(values), np.arange(len(values))
    for table in (
        variance_shares(decomposition, parts, documents, Bootstrap(200)),
        intraclass(decomposition, parts, documents, Bootstrap(200)),
        captured(missed(values, values.mean(axis=0), np.arange(2)), documents, Bootstrap(200)),
    ):
        assert not table.isna().any().any()
