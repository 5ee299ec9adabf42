"""One number for a group of models, as sure as its least sure one."""

from fca.results.numbers import across


def test_one_undefined_seed_makes_the_group_undefined():
    one, none = {"value": 1.0, "low": 0.5, "high": 1.5}, {"value": None, "low": None, "high": None}
    assert across([one, none])["value"] is None
    assert across([one])["low"] == 0.5
    assert across([one, {**one, "value": 2.0}])["interval"] == "t over seeds"
