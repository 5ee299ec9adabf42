"""In: the shape and labels of a coefficient array. Out: where each coefficient is taken from.

Reassignments keep the multiset of coefficients and break one alignment each: `cross_input` that
of inputs, `token_shuffle` that of tokens, `layer_shuffle` that of layers, `expert_shuffle` that of
channels within a layer; joined by `+`, several (see `draws`).
"""

from collections.abc import Callable

import numpy as np

from fca.errors import Undefined
from fca.interventions.assignments import Assignment, Indices, Labels


def correct(labels: Labels, rng: np.random.Generator) -> Assignment:
    """Identity: the cache as it is."""
    return Assignment()


def cross_input(labels: Labels, rng: np.random.Generator) -> Assignment:
    """Every input gets the coefficients of a donor from another document; each donates once.

    The inputs are put in random order within random-ordered documents and everyone takes from
    the one `largest` places further, where `largest` is the size of the largest document: so far
    apart no two can share a document. Raises Undefined where one document has over half the inputs.
    """
    documents = np.asarray(labels.documents)
    _, group, sizes = np.unique(documents, return_inverse=True, return_counts=True)
    largest = int(sizes.max(initial=0))
    if 2 * largest > len(documents):
        raise Undefined(
            f"cross_input needs donors from other documents, but one document has {largest} of the "
            f"{len(documents)} inputs; take more documents or fewer windows from each"
        )
    order = np.lexsort((rng.random(len(documents)), rng.permutation(len(sizes))[group]))
    # ASSUME: among the distances that keep donors in other documents one is drawn at random, so
    # that repeats differ by more than the order.
    distance = int(rng.integers(largest, len(documents) - largest + 1))
    donors = np.empty(len(documents), dtype=np.int64)
    donors[order] = np.roll(order, distance)
    return Assignment(donors=donors)


def token_shuffle(labels: Labels, rng: np.random.Generator, keep_first: int = 0) -> Assignment:
    """One random permutation of the tokens per input, the same for all coefficients of a token.

    The first `keep_first` tokens keep their own: attention sinks can be left out of the shuffle.

    ASSUME: shared by all coefficients, so that a token's coefficients stay together and only
    their place in the text is wrong. A permutation may leave a token in its place (one on average).
    A token can get coefficients that were computed from later text of its own window: a causal
    model then sees a trace of its future, which may make the penalty smaller.
    """
    if labels.tokens - keep_first < 2:
        raise Undefined("token_shuffle needs at least two tokens with coefficients of their own")
    order = np.tile(np.arange(labels.tokens), (len(labels.documents), 1))
    order[:, keep_first:] = rng.permuted(order[:, keep_first:], axis=1)
    return Assignment(tokens=order)


def token_shuffle_by_layer(labels: Labels, rng: np.random.Generator) -> Assignment:
    """As token_shuffle, with a permutation of its own for every layer."""
    layers, position = np.unique(labels.layers, return_inverse=True)
    tiled = np.tile(np.arange(labels.tokens), (len(labels.documents), len(layers), 1))
    order = rng.permuted(tiled, axis=2)  # [input, layer, token]
    return Assignment(tokens=order[:, position, :].transpose(0, 2, 1))


def layer_shuffle(labels: Labels, rng: np.random.Generator) -> Assignment:
    """One random derangement of the layers. Raises Undefined unless all have the same channels."""
    if not layers_alike(labels.layers):
        raise Undefined(
            "layer_shuffle is defined only for two or more layers with the same number of channels"
        )
    rows = np.argsort(labels.layers, kind="stable").reshape(len(np.unique(labels.layers)), -1)
    shuffled = np.empty(rows.size, dtype=np.int64)
    shuffled[rows] = rows[derangement(len(rows), rng)]
    return Assignment(coefficients=shuffled)


def expert_shuffle(labels: Labels, rng: np.random.Generator) -> Assignment:
    """One random permutation of the channels (experts) within each layer, for all tokens alike.

    Raises Undefined where every layer has one channel.
    """
    order = np.arange(len(labels.layers))
    groups = [np.flatnonzero(labels.layers == layer) for layer in np.unique(labels.layers)]
    if all(len(group) < 2 for group in groups):
        raise Undefined("expert_shuffle needs layers with two or more channels")
    for group in groups:
        if len(group) > 1:
            order[group] = group[derangement(len(group), rng)]
    return Assignment(coefficients=order)


def layers_alike(layers: Indices) -> bool:
    """Whether there are several layers and all have the same number of channels."""
    sizes = np.unique(layers, return_counts=True)[1]
    return len(sizes) > 1 and len(set(sizes.tolist())) == 1


def derangement(n: int, rng: np.random.Generator) -> Indices:
    """A uniformly random permutation of n >= 2 things that leaves none in its place."""
    while True:  # a permutation is a derangement with probability near 1/e
        order = rng.permutation(n)
        if (order != np.arange(n)).all():
            return order


#: name -> how it is drawn
REASSIGNMENTS: dict[str, Callable[[Labels, np.random.Generator], Assignment]] = {
    "correct": correct,
    "cross_input": cross_input,
    "token_shuffle": token_shuffle,
    "token_shuffle_by_layer": token_shuffle_by_layer,
    "layer_shuffle": layer_shuffle,
    "expert_shuffle": expert_shuffle,
}
