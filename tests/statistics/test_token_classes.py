"""Penalties by position and by token frequency, against sums written out by hand."""

import numpy as np
import pytest

from fca.statistics.intervals import Bootstrap
from fca.statistics.token_classes import frequency_classes, penalties, position_classes


def test_positions_double():
    classes, bounds = position_classes(np.arange(1, 11))
    assert classes.tolist() == [0, 1, 1, 2, 2, 2, 2, 3, 3, 3]
    assert bounds == [(1, 1), (2, 3), (4, 7), (8, 10)]


def test_frequencies_are_counted_in_the_calibration_text():
    calibration = np.array([[1] * 12, [2] * 9 + [3] * 3])
    classes, bounds = frequency_classes(np.array([[1, 2, 3, 7]]), calibration)
    assert classes.tolist() == [[2, 1, 1, 0]]
    assert bounds == [(0, 0), (1, 9), (10, 99)]


def test_penalties_by_class_are_means_over_its_tokens(rng):
    correct = rng.normal(3, 1, (8, 7))
    worse = correct + rng.normal(0.2, 0.1, (8, 7))
    worse[:, 0] += 5  # the first position bears the effect
    classes, bounds = position_classes(np.arange(1, 8))
    table = penalties(
        {"correct": correct, "x": worse}, classes, bounds, np.arange(8), Bootstrap(200)
    ).set_index("from")
    assert table["tokens"].to_dict() == {1: 8, 2: 16, 4: 32}
    assert table.loc[1, "penalty"] == pytest.approx((worse - correct)[:, 0].mean())
    assert table.loc[4, "penalty"] == pytest.approx((worse - correct)[:, 3:].mean())
    weighted = (table["penalty"] * table["tokens"]).sum() / table["tokens"].sum()
    assert weighted == pytest.approx((worse - correct).mean())


def test_empty_classes_and_single_documents_are_defined(rng):
    losses = {"correct": np.ones((1, 3)), "x": 2 * np.ones((1, 3))}
    table = penalties(losses, np.array([[0, 2, 2]]), [(0, 0), (1, 9), (10, 99)], np.zeros(1), Bootstrap(100))
    assert table["from"].tolist() == [0, 10]
    assert (table["penalty"] == 1).all()
    assert (table.loc[table["intervention"] != "correct", "penalty_low"] == "too few documents").all()
