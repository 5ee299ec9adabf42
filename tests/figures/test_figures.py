"""Every figure has a title, a caption and a function that draws it."""

import pytest

from fca.figures import FIGURES
from fca.figures.draw import figure


@pytest.mark.parametrize("name", FIGURES)
def test_figures_say_what_to_see(name):
    found = figure(name)
    assert callable(found.draw)
    assert found.draw.__name__ == name
    assert len(found.title) > 10
    assert len(found.caption) > 60
