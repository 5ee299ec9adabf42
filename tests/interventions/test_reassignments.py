"""Reassignments keep the multiset and break exactly the alignment that names them."""

import numpy as np
import pytest

from fca.errors import FcaError, Undefined
from fca.interventions.assignments import Labels
from fca.interventions.draws import draw

DOCUMENTS = np.array([0, 0, 0, 1, 1, 2, 3, 3])
LABELS = Labels(DOCUMENTS, tokens=5, layers=np.array([0, 1, 2]))


def apply(name, values, labels=LABELS, seed=0):
    return draw(name, labels, seed).gather(lambda i: values[i], np.arange(len(values)))


@pytest.fixture
def values(rng):
    return rng.normal(size=(8, 5, 3)).astype(np.float32)


@pytest.mark.parametrize(
    "name",
    [
        "correct",
        "cross_input",
        "token_shuffle",
        "token_shuffle_by_layer",
        "layer_shuffle",
        "cross_input+token_shuffle",
    ],
)
def test_multiset_is_kept(name, values):
    assert np.array_equal(np.sort(apply(name, values), axis=None), np.sort(values, axis=None))


def test_correct_is_identity(values):
    assert np.array_equal(apply("correct", values), values)


@pytest.mark.parametrize("seed", range(50))
def test_donors_are_a_derangement_across_documents(seed):
    donors = draw("cross_input", LABELS, seed).donors
    assert sorted(donors) == list(range(8))
    assert (DOCUMENTS[donors] != DOCUMENTS).all()


def test_every_allowed_donor_occurs():
    seen = {
        (i, int(d)) for seed in range(400) for i, d in enumerate(draw("cross_input", LABELS, seed).donors)
    }
    assert seen == {(i, d) for i in range(8) for d in range(8) if DOCUMENTS[i] != DOCUMENTS[d]}


def test_cross_input_undefined_with_a_dominating_document():
    with pytest.raises(Undefined, match="5 of the 6 inputs"):
        draw("cross_input", Labels(np.array([0, 0, 0, 0, 0, 1]), 5, np.arange(3)), 0)


def test_token_shuffle_moves_whole_tokens(values):
    shuffled = apply("token_shuffle", values)
    for before, after in zip(values, shuffled, strict=True):
        rows = {tuple(row) for row in before}
        assert all(tuple(row) in rows for row in after)
    assert not np.array_equal(shuffled, values)


def test_token_shuffle_by_layer_splits_tokens(values):
    rows = {tuple(row) for row in values[0]}
    assert not all(tuple(row) in rows for row in apply("token_shuffle_by_layer", values)[0])


def test_layer_shuffle_moves_every_layer_as_a_whole():
    layers = np.array([0, 0, 1, 1, 2, 2])
    order = draw("layer_shuffle", Labels(DOCUMENTS, 5, layers), 3).coefficients
    assert (layers[order] != layers).all()
    assert np.array_equal(order % 2, np.arange(6) % 2)  # channels stay in their place


def test_layer_shuffle_undefined_for_unlike_layers():
    with pytest.raises(Undefined, match="same number of channels"):
        draw("layer_shuffle", Labels(DOCUMENTS, 5, np.array([0, 0, 1])), 0)


def test_a_part_draws_alike_alone_and_combined():
    alone, combined = draw("cross_input", LABELS, 5), draw("cross_input+token_shuffle", LABELS, 5)
    assert np.array_equal(alone.donors, combined.donors)
    assert np.array_equal(draw("token_shuffle", LABELS, 5).tokens, combined.tokens)


def test_seeds_differ():
    assert not np.array_equal(
        draw("token_shuffle", LABELS, 0).tokens, draw("token_shuffle", LABELS, 1).tokens
    )


def test_batches_gather_what_the_whole_does(values):
    drawn = draw("cross_input+token_shuffle+layer_shuffle", LABELS, 1)
    whole = drawn.gather(lambda i: values[i], np.arange(8))
    parts = [drawn.gather(lambda i: values[i], np.arange(a, a + 2)) for a in range(0, 8, 2)]
    assert np.array_equal(np.concatenate(parts), whole)


def test_unknown_names_are_refused_with_the_known_ones():
    with pytest.raises(FcaError, match="unknown intervention 'tokens_shuffle'.*token_shuffle"):
        draw("tokens_shuffle", LABELS, 0)
    with pytest.raises(FcaError, match="same axis twice"):
        draw("token_shuffle+token_shuffle_by_layer", LABELS, 0)
