"""Intervals: coverage with known truth, parity with scipy and statsmodels, degenerate samples."""

import numpy as np
import pytest
from scipy import stats
from statsmodels.stats.multitest import multipletests

from fca.statistics.effects import effects, over_seeds, significance
from fca.statistics.intervals import Bootstrap, Estimate, by_document, holm, p_value

SIMULATED = 1000


def simulate(rng, documents, most, skewed):
    """Gap (mean 1) and loss of a profile (mean 0.05) per input; inputs of a document are alike."""

    def draw(n):
        return rng.gamma(4, 1 / 4, n) if skewed else rng.normal(1, 0.3, n)

    of = np.repeat(np.arange(documents), rng.integers(1, most + 1, documents))
    gap = draw(documents)[of] * draw(len(of))
    lost = 0.05 * draw(documents)[of] * draw(len(of))
    return of, gap, lost


@pytest.mark.parametrize("skewed", [False, True], ids=["symmetric", "skewed"])
@pytest.mark.parametrize(("documents", "most"), [(24, 1), (24, 4), (60, 3)])
def test_intervals_cover_the_truth_as_often_as_they_say(documents, most, skewed):
    rng = np.random.default_rng(11)
    hits = np.zeros(2)
    for _ in range(SIMULATED):
        of, gap, lost = simulate(rng, documents, most, skewed)
        correct = rng.normal(3, 0.5, len(of))
        table = effects(
            {"correct": correct, "global_mean": correct + gap, "layer_mean": correct + lost},
            of,
            Bootstrap(1000),
        )["layer_mean"]
        for k, (estimate, truth) in enumerate(((table["penalty"], 0.05), (table["retention"], 0.95))):
            hits[k] += estimate.low <= truth <= estimate.high
    assert (hits / SIMULATED >= 0.93).all(), hits
    assert (hits / SIMULATED <= 0.97).all(), hits


def test_intervals_agree_with_scipys_bootstrap_on_a_large_sample(rng):
    gap, lost = rng.gamma(4, 0.25, 400), rng.gamma(4, 0.01, 400)
    found = Bootstrap(4000).ratio(gap - lost, gap)
    theirs = stats.bootstrap(
        (gap - lost, gap),
        lambda a, b, axis=-1: a.sum(axis) / b.sum(axis),
        paired=True,
        n_resamples=4000,
        rng=np.random.default_rng(1),
    )
    width = found.high - found.low
    assert found.low == pytest.approx(theirs.confidence_interval.low, abs=0.1 * width)
    assert found.high == pytest.approx(theirs.confidence_interval.high, abs=0.1 * width)


def test_few_documents_use_students_t(rng):
    values = rng.normal(size=5)
    found = Bootstrap().ratio(values, np.ones(5))
    low, high = stats.t.interval(0.95, 4, values.mean(), stats.sem(values))
    assert (found.low, found.high) == (pytest.approx(low), pytest.approx(high))


def test_p_values_are_the_t_tests_and_holms(rng):
    values = rng.normal(0.2, 1, size=(6, 30))
    mine = [p_value(v, np.ones(30)) for v in values]
    assert mine == pytest.approx(stats.ttest_1samp(values, 0, axis=1).pvalue)
    assert holm(mine) == pytest.approx(multipletests(mine, method="holm")[1])
    assert holm([None, 0.01, None, 0.04]) == [None, 0.02, None, 0.04]


def test_holm_rejects_no_true_hypothesis_too_often():
    rng = np.random.default_rng(5)
    wrong = 0
    for _ in range(500):
        adjusted = holm([p_value(v, np.ones(20)) for v in rng.normal(size=(8, 20))])
        wrong += min(adjusted) < 0.05
    assert wrong / 500 < 0.08


@pytest.mark.parametrize("documents", [1, 2, 3, 9])
def test_degenerate_samples_have_defined_results(documents):
    ones = np.ones(documents)
    equal = Bootstrap().ratio(0.3 * ones, ones)
    assert equal.value == pytest.approx(0.3)
    assert (equal.low, equal.high) == ((None, None) if documents == 1 else (equal.value, equal.value))
    assert Bootstrap().ratio(ones, 0 * ones) == Estimate(None)
    assert p_value(0 * ones, ones) == (None if documents == 1 else 1.0)
    uneven = Bootstrap().ratio(np.arange(documents, dtype=float), ones)
    assert uneven.value == (documents - 1) / 2
    assert np.isfinite([v for v in (uneven.low, uneven.high) if v is not None]).all()


def test_all_equal_losses_are_told_apart_from_undefined():
    losses = {name: np.full(6, 2.0) for name in ("correct", "global_mean", "layer_mean")}
    table = effects(losses, np.arange(6), Bootstrap(200))
    assert table["layer_mean"]["penalty"] == Estimate(0.0, 0.0, 0.0)
    assert table["layer_mean"]["retention"].value is None
    frame = significance(losses, np.arange(6)).set_index("intervention")
    assert frame.loc["correct", "p"] == "undefined"
    assert frame.loc["layer_mean", "p_holm"] == 1.0


def test_sums_by_document_and_one_seed(rng):
    assert by_document([1, 2, 3, 4], np.array([7, 3, 7, 3])).tolist() == [6, 4]
    assert over_seeds([2.0])["low"] is None
