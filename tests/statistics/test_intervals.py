"""Intervals: coverage with known truth, parity with scipy and statsmodels, degenerate samples."""

import numpy as np
import pytest
from scipy import stats
from statsmodels.stats.multitest import multipletests

from fca.statistics.effects import effects, over_seeds, significance
from fca.statistics.intervals import (
    AGREEING,
    DOCUMENTS,
    TOO_FEW,
    Bootstrap,
    Estimate,
    by_document,
    cells,
    holm,
)

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
    hits, given = np.zeros(2), np.zeros(2)
    for _ in range(SIMULATED):
        of, gap, lost = simulate(rng, documents, most, skewed)
        correct = rng.normal(3, 0.5, len(of))
        table = effects(
            {"correct": correct, "global_mean": correct + gap, "layer_mean": correct + lost},
            of,
            Bootstrap(1000),
        )["layer_mean"]
        for k, (estimate, truth) in enumerate(((table["penalty"], 0.05), (table["retention"], 0.95))):
            if estimate.low is not None:
                given[k] += 1
                hits[k] += estimate.low <= truth <= estimate.high
    assert (given / SIMULATED >= 0.9).all(), given
    assert (hits / given >= 0.93).all(), hits / given
    assert (hits / given <= 0.97).all(), hits / given


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


@pytest.mark.parametrize("documents", range(1, DOCUMENTS))
def test_too_few_documents_have_no_interval(documents, rng):
    found = Bootstrap().ratio(rng.normal(size=documents), np.ones(documents))
    assert (found.low, found.high, found.p, found.note) == (None, None, None, TOO_FEW)
    assert np.isfinite(found.value)
    assert cells({"x": found})["x_low"] == TOO_FEW


def test_few_documents_that_carry_all_have_no_interval(rng):
    """A token-frequency class that 4 of 64 documents hold, and a loss that one of 64 documents has."""
    tokens = np.zeros(64)
    tokens[:4] = [1, 3, 2, 2]
    assert Bootstrap().ratio(rng.normal(size=64) * tokens, tokens).note == TOO_FEW
    lost = np.zeros(64)
    lost[0] = 5.0
    assert Bootstrap().ratio(lost, np.ones(64)).note == TOO_FEW


@pytest.mark.parametrize("seed", range(40))
def test_no_interval_is_wider_than_the_data_allow(seed):
    """Classes that few documents hold gave intervals of millions of nats."""
    rng = np.random.default_rng(seed)
    tokens = np.where(rng.random(64) < rng.uniform(0.05, 0.5), rng.poisson(2, 64) + 1, 0).astype(float)
    loss = rng.standard_t(2, 64) * tokens
    found = Bootstrap(500).ratio(loss, tokens)
    if found.low is not None:
        ratios = loss[tokens > 0] / tokens[tokens > 0]
        assert min(ratios.min(), 0) <= found.low <= found.value <= found.high <= max(ratios.max(), 0)


def test_p_and_interval_never_contradict_each_other():
    """p is below 1 - confidence exactly where the interval excludes 0, whatever the data look like."""
    rng = np.random.default_rng(2)
    excluded = 0
    for case in range(600):
        n = int(rng.integers(12, 80))
        inputs = rng.integers(1, 5, n).astype(float)
        loss = rng.choice([rng.normal(0.3, 1, n), rng.exponential(1, n) - 0.8, rng.standard_t(2, n)]) * inputs
        confidence = (0.8, 0.95, 0.99)[case % 3]
        found = Bootstrap(400, confidence, seed=case % 5).ratio(loss, inputs)
        if found.p is not None:
            outside = not found.low <= 0 <= found.high
            excluded += outside
            assert (found.p < 1 - confidence) == outside
    assert 50 < excluded < 550


def test_p_values_agree_with_the_t_test_where_the_bootstrap_has_nothing_to_add(rng):
    values = rng.normal(0.1, 1, size=(6, 400))
    mine = [Bootstrap(4000).ratio(v, np.ones(400)).p for v in values]
    theirs = stats.ttest_1samp(values, 0, axis=1).pvalue
    assert (np.asarray(mine) >= theirs).all()
    assert mine == pytest.approx(theirs, abs=0.03)
    assert holm(mine) == pytest.approx(multipletests(mine, method="holm")[1])
    assert holm([None, 0.01, None, 0.04]) == [None, 0.02, None, 0.04]


def test_holm_rejects_no_true_hypothesis_too_often():
    rng = np.random.default_rng(5)
    wrong = 0
    for _ in range(500):
        adjusted = holm([Bootstrap(400).ratio(v, np.ones(20)).p for v in rng.normal(size=(8, 20))])
        wrong += min(p for p in adjusted if p is not None) < 0.05
    assert wrong / 500 < 0.08


@pytest.mark.parametrize("documents", [1, 2, 3, 9, AGREEING])
def test_degenerate_samples_have_defined_results(documents):
    """All equal: believed where enough documents agree."""
    ones = np.ones(documents)
    equal = Bootstrap().ratio(0.3 * ones, ones)
    assert equal.value == pytest.approx(0.3)
    believed = documents >= AGREEING
    assert (equal.low, equal.high) == ((equal.value, equal.value) if believed else (None, None))
    assert Bootstrap().ratio(ones, 0 * ones) == Estimate(None)
    assert Bootstrap().ratio(0 * ones, ones).p == (1.0 if believed else None)
    uneven = Bootstrap().ratio(np.arange(documents, dtype=float), ones)
    assert uneven.value == (documents - 1) / 2
    assert np.isfinite([v for v in (uneven.low, uneven.high) if v is not None]).all()


def test_all_equal_losses_are_told_apart_from_undefined():
    losses = {name: np.full(64, 2.0) for name in ("correct", "global_mean", "layer_mean")}
    table = effects(losses, np.arange(64), Bootstrap(200))
    assert table["layer_mean"]["penalty"] == Estimate(0.0, 0.0, 0.0)
    assert table["layer_mean"]["retention"].value is None
    frame = significance(losses, np.arange(64), Bootstrap(200)).set_index("intervention")
    assert frame.loc["correct", "p"] == "undefined"
    assert frame.loc["layer_mean", "p_holm"] == 1.0


def test_what_is_known_without_data_has_an_interval(rng):
    """`correct` costs nothing and keeps all, `global_mean` keeps nothing: by definition, not by sample."""
    base = rng.normal(3, 0.3, 20)
    losses = {"correct": base, "global_mean": base + rng.normal(1, 0.1, 20)}
    table = effects(losses, np.arange(20), Bootstrap(200))
    assert table["correct"]["penalty"] == table["global_mean"]["retention"] == Estimate(0.0, 0.0, 0.0)
    assert table["correct"]["retention"] == Estimate(1.0, 1.0, 1.0)


def test_sums_by_document_and_one_seed(rng):
    assert by_document([1, 2, 3, 4], np.array([7, 3, 7, 3])).tolist() == [6, 4]
    assert over_seeds([2.0])["low"] is None
