"""Profiles, fingerprints, variance and effects against independent derivations."""

import numpy as np
import pandas as pd
import pytest
import statsmodels.formula.api as smf
from scipy import stats
from statsmodels.stats.anova import anova_lm

from fca.arithmetic.effects import Bootstrap, effects, over_seeds, tidy
from fca.arithmetic.multiset import fingerprint
from fca.arithmetic.profiles import ORACLES, PROFILES, oracle, profile
from fca.arithmetic.variance import decompose
from fca.errors import FcaError

# ---------------------------------------------------------------- profiles


def test_profiles_are_the_means_that_their_names_say(rng):
    values = rng.normal(size=(6, 4, 3))
    mean = values.mean(axis=0)
    assert np.allclose(profile("global_mean", mean), values.mean())
    assert np.allclose(profile("layer_mean", mean), values.mean(axis=(0, 1))[None, :])
    assert np.allclose(profile("token_mean", mean), values.mean(axis=(0, 2))[:, None])
    assert np.allclose(profile("layer_token_mean", mean), values.mean(axis=0))
    assert np.allclose(oracle("input_layer_mean", values), values.mean(axis=1, keepdims=True))
    assert np.allclose(oracle("input_mean", values), values.mean(axis=(1, 2), keepdims=True))
    assert np.allclose(oracle("input_token_mean", values), values.mean(axis=2, keepdims=True))


@pytest.mark.parametrize("name", PROFILES)
def test_profile_of_a_profile_is_itself(name, rng):
    layers = [0, 0, 1]
    once = profile(name, rng.normal(size=(4, 3)), layers)
    assert np.allclose(profile(name, once, layers), once)


def test_unknown_profile():
    with pytest.raises(FcaError, match="known: global_mean"):
        profile("layers_mean", np.zeros((2, 2)))
    assert set(ORACLES).isdisjoint(PROFILES)


# ------------------------------------------------------------- fingerprints


def test_fingerprint_ignores_order_and_batches(rng):
    values = rng.normal(size=(6, 5, 3)).astype(np.float32)
    shuffled = values[rng.permutation(6)][:, rng.permutation(5)]
    assert np.array_equal(fingerprint(values), fingerprint(shuffled))
    assert np.array_equal(fingerprint(values), fingerprint(values[:2]) + fingerprint(values[2:]))


def test_fingerprint_sees_a_single_bit(rng):
    values = rng.normal(size=(6, 5, 3)).astype(np.float32)
    changed = values.copy()
    changed[3, 2, 1] = np.nextafter(changed[3, 2, 1], np.float32(9))
    assert (fingerprint(values) != fingerprint(changed)).tolist() == [False, True, False]
    swapped = values.copy()
    swapped[0, 0, [0, 1]] = swapped[0, 0, [1, 0]]  # same values, other coefficient
    assert not np.array_equal(fingerprint(values), fingerprint(swapped))


# ----------------------------------------------------------------- variance


def test_shares_agree_with_statsmodels(rng):
    values = rng.normal(size=(4, 3, 5)) + 2 * rng.normal(size=(1, 1, 5)) + rng.normal(size=(4, 1, 1)) + 7
    i, t, layer = (a.ravel() for a in np.indices(values.shape))
    frame = pd.DataFrame({"y": values.ravel(), "input": i, "token": t, "layer": layer})
    # the three-way interaction is the residual of the saturated model
    fitted = smf.ols("y ~ (C(input) + C(token) + C(layer))**2", frame).fit()
    expected = anova_lm(fitted)["sum_sq"]
    names = {
        "input": "C(input)",
        "token": "C(token)",
        "layer": "C(layer)",
        "input:token": "C(input):C(token)",
        "layer:input": "C(input):C(layer)",
        "layer:token": "C(token):C(layer)",
        "layer:input:token": "Residual",
    }
    found = decompose([values[:1], values[1:]], np.arange(5)).table().set_index("term")["sum_of_squares"]
    assert set(found.index) == set(names)
    for term, name in names.items():
        assert found[term] == pytest.approx(expected[name], rel=1e-9)


def test_nested_channels_agree_with_projections(rng):
    """Independent derivation: project on each level of each axis and take squared norms."""
    layers = np.array([0, 0, 1, 1, 1, 2])
    values = rng.normal(size=(5, 4, 6)) + rng.normal(size=6)

    def average(n):
        return np.full((n, n), 1 / n)

    within = (layers[:, None] == layers) / np.bincount(layers)[layers][:, None]
    axes = {
        "input": {"": average(5), "input": np.eye(5) - average(5)},
        "token": {"": average(4), "token": np.eye(4) - average(4)},
        "coefficient": {"": average(6), "layer": within - average(6), "channel": np.eye(6) - within},
    }
    found = decompose([values], layers).table().set_index("term")["sum_of_squares"]
    checked = 0
    for depth, c in axes["coefficient"].items():
        for i_name, i in axes["input"].items():
            for t_name, t in axes["token"].items():
                term = ":".join(filter(None, [depth, i_name, t_name]))
                if term:
                    part = np.einsum("ai,bt,ck,itk->abc", i, t, c, values)
                    assert found[term] == pytest.approx(np.square(part).sum(), rel=1e-9)
                    checked += 1
    assert checked == len(found) == 11


def test_shares_add_up_whatever_the_chunks(rng):
    values = (1 + 1e-4 * rng.normal(size=(9, 8, 7))).astype(np.float32)  # little variance on a large mean
    whole = decompose([values], np.arange(7)).table()
    parts = decompose([values[a : a + 2] for a in range(0, 9, 2)], np.arange(7)).table()
    exact = values.astype(np.float64)
    assert whole["sum_of_squares"].sum() == pytest.approx(np.square(exact - exact.mean()).sum(), rel=1e-9)
    assert whole["share"].sum() == pytest.approx(1)
    assert np.allclose(whole["share"], parts["share"], atol=1e-9)


def test_degenerate_arrays_have_defined_shares():
    constant = decompose([np.full((3, 4, 2), 0.1)], [0, 1]).table()
    assert (constant["share"] == 0).all()
    one_layer = decompose([np.random.default_rng(0).normal(size=(3, 4, 1))], [0]).table()
    assert one_layer["share"].sum() == pytest.approx(1)
    assert one_layer["share"].notna().all()
    one_input = decompose([np.random.default_rng(0).normal(size=(1, 4, 2))], [0, 1]).table()
    assert one_input.set_index("term").loc["input", "share"] == 0
    with pytest.raises(FcaError, match="no inputs"):
        decompose([], [0]).table()


# ------------------------------------------------------------------ effects


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
    assert (table["penalty_low"] == "undefined").all()
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
