"""Keys change when and only when content does."""

import pytest

from fca.store.code import code_digest, imports, parse
from fca.store.keys import Recipe, digest

RECIPE = Recipe("profiles", {"a": 1}, {"calibration": "coefficients/abc"}, {}, "code")


@pytest.mark.parametrize(
    "other",
    [
        Recipe("variance", {"a": 1}, {"calibration": "coefficients/abc"}, {}, "code"),
        Recipe("profiles", {"a": 2}, {"calibration": "coefficients/abc"}, {}, "code"),
        Recipe("profiles", {"a": 1}, {"calibration": "coefficients/abd"}, {}, "code"),
        Recipe("profiles", {"a": 1}, {"calibration": "coefficients/abc"}, {"x": "1"}, "code"),
        Recipe("profiles", {"a": 1}, {"calibration": "coefficients/abc"}, {}, "edited"),
    ],
)
def test_each_part_of_a_recipe_counts(other):
    assert other.key != RECIPE.key


def test_order_of_parameters_does_not_count():
    assert digest({"a": 1, "b": [1, 2]}) == digest({"b": [1, 2], "a": 1})
    assert digest({"b": [1, 2]}) != digest({"b": [2, 1]})


def test_comments_docstrings_and_formatting_do_not_count():
    plain = "def f(x):\n    return x + 1\n"
    dressed = (
        '"""Module."""\n\n# why\ndef f(x):\n    """Doc."""\n    return (x\n            + 1)  # because\n'
    )
    assert parse(plain)[0] == parse(dressed)[0]
    assert parse(plain)[0] != parse(plain.replace("1", "2"))[0]


def test_digest_follows_imports_inside_the_package():
    assert "fca.statistics.effects" in imports("fca.stages.effects")
    assert "fca.controllers.sites" in imports("fca.frozen.capture")
    assert code_digest("fca.stages.effects") != code_digest("fca.stages.variance")
