"""The decomposition of variance against statsmodels and projections."""

import numpy as np
import pandas as pd
import pytest
import statsmodels.formula.api as smf
from statsmodels.stats.anova import anova_lm

from fca.errors import FcaError
from fca.statistics.variance import decompose


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
