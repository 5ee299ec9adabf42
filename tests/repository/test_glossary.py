"""Every term has one line, and stands where the glossary says."""

import re
from importlib.util import find_spec
from pathlib import Path
from pkgutil import resolve_name

import pytest

ROOT = Path(__file__).resolve().parents[2]
ROWS = [
    [cell.strip() for cell in line.strip("|").split("|")]
    for line in (ROOT / "docs" / "glossary.md").read_text().splitlines()
    if line.startswith("| ") and not line.startswith("| term")
]
PACKAGE = ROOT / "workflow" / "fca"
#: a word -> the only rooms in whose code it stands
WORDS = {
    r"famil(y|ies)": ("controllers", "cli", "models", "stages/imports.py", "planning/plan.py"),
    r"[Ss]ample ?[Ss]izes?": ("results", "report"),
}


def test_every_term_is_listed_once():
    terms = [term for row in ROWS for term in row[0].split(", ")]
    assert len(terms) > 45
    assert len(set(terms)) == len(terms)
    assert all(len(row) == 3 and all(row) for row in ROWS)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row[0])
def test_terms_stand_where_they_are_said_to(row):
    for name in re.findall(r"`(fca[\w.]+)`", row[2]):
        assert find_spec(name) if name.split(".")[-1].islower() and exists(name) else resolve_name(name)


def exists(name: str) -> bool:
    path = PACKAGE.parent.joinpath(*name.split("."))
    return path.is_dir() or path.with_suffix(".py").is_file()


@pytest.mark.parametrize("word", WORDS)
def test_words_stay_in_their_rooms(word):
    for path in PACKAGE.rglob("*.py"):
        place = path.relative_to(PACKAGE)
        if not str(place).startswith(WORDS[word]):
            text = path.read_text().replace("font.family", "")
            assert not re.search(rf"\b{word}\b", text), place
