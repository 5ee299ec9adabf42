"""How many documents a width needs, and family values over seeds and documents: by simulation."""

import numpy as np
import pytest
from scipy import stats

from fca.statistics.hierarchy import over_seeds_and_documents
from fca.statistics.intervals import Bootstrap, Estimate
from fca.statistics.power import Power, inputs_for, power, smallest


def test_the_documents_asked_for_give_the_width(rng):
    def draw(n):
        gap = rng.gamma(4, 0.25, n)
        return gap - rng.gamma(4, 0.0125, n), gap

    pilot = draw(400)
    needed = power(*pilot, width=0.02, confidence=0.95).documents
    widths = []
    for _ in range(40):
        found = Bootstrap(500).ratio(*draw(needed))
        widths.append(found.high - found.low)
    assert np.mean(widths) == pytest.approx(0.02, rel=0.15)


def test_the_width_now_is_the_t_interval(rng):
    values = rng.normal(size=12)
    found = power(values, np.ones(12), width=0.5, confidence=0.9)
    low, high = stats.t.interval(0.9, 11, values.mean(), stats.sem(values))
    assert (found.value, found.width) == (pytest.approx(values.mean()), pytest.approx(high - low))
    at = [
        2 * stats.t.ppf(0.95, n - 1) * values.std(ddof=1) / n**0.5
        for n in (found.documents - 1, found.documents)
    ]
    assert at[0] > 0.5 >= at[1]


def test_power_of_degenerate_samples():
    assert power(np.ones(1), np.ones(1), 0.1, 0.95) == Power(1.0, None, None)
    assert power(np.ones(5), np.zeros(5), 0.1, 0.95) is None
    assert power(np.ones(5), np.ones(5), 0.1, 0.95) == Power(1.0, 0.0, 2)
    assert smallest(lambda n: 1.0, 0.5) is None
    assert inputs_for(None, 64, 32) is None
    assert inputs_for(10, 64, 32) == 20


def test_group_intervals_cover_the_truth():
    """Crossed random effects of 6 seeds and 30 documents, and their interaction; the truth is 1."""
    rng = np.random.default_rng(8)
    hits = 0
    for _ in range(500):
        values = (
            1
            + 0.2 * rng.normal(size=(6, 1))
            + 0.4 * rng.normal(size=(1, 30))
            + 0.3 * rng.normal(size=(6, 30))
        )
        found = over_seeds_and_documents(values, np.ones((6, 30))).estimate
        hits += found.low <= 1 <= found.high
    assert 0.93 <= hits / 500 <= 0.97, hits


def test_the_error_of_common_draws_counts():
    """A draw common to all seeds and documents, as an order of layers: without it intervals are blind."""
    rng = np.random.default_rng(9)
    hits = {"with": 0, "without": 0}
    for _ in range(500):
        draws = 0.5 * rng.normal(size=6)
        values = 1 + draws.mean() + 0.3 * rng.normal(size=(1, 30)) + 0.3 * rng.normal(size=(4, 30))
        repeats = (draws.std(ddof=1) / 6**0.5, 6)
        for name, given in (("with", repeats), ("without", None)):
            found = over_seeds_and_documents(values, np.ones((4, 30)), repeats=given).estimate
            hits[name] += found.low <= 1 <= found.high
    assert hits["without"] / 500 < 0.8
    assert 0.92 <= hits["with"] / 500 <= 0.98


def test_one_seed_or_one_document_is_the_other_alone(rng):
    values = rng.normal(1, 0.2, 20)
    low, high = stats.t.interval(0.95, 19, values.mean(), stats.sem(values))
    seed = over_seeds_and_documents(values[None], np.ones((1, 20)))
    document = over_seeds_and_documents(values[:, None], np.ones((20, 1)))
    for found in (seed, document):
        assert (found.estimate.low, found.estimate.high) == (pytest.approx(low), pytest.approx(high))
    assert seed.of_seeds is None
    assert document.of_documents is None
    assert over_seeds_and_documents(np.ones((1, 1)), np.ones((1, 1))).estimate == Estimate(1.0)
    assert over_seeds_and_documents(np.ones((2, 2)), np.zeros((2, 2))).estimate == Estimate(None)
