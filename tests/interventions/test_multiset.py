"""Fingerprints depend on the multiset only."""

import numpy as np

from fca.interventions.multiset import fingerprint


def test_fingerprint_ignores_order_and_batches(rng):
    values = rng.normal(size=(6, 5, 3)).astype(np.float32)
    shuffled = values[rng.permutation(6)][:, rng.permutation(5)]
    assert np.array_equal(fingerprint(values), fingerprint(shuffled))
    assert np.array_equal(fingerprint(values), fingerprint(values[:2]) + fingerprint(values[2:]))


def test_fingerprint_sees_a_single_bit(rng):
    values = rng.normal(size=(6, 5, 3)).astype(np.float32)
    changed = values.copy()
    changed[3, 2, 1] = np.nextafter(changed[3, 2, 1], np.float32(9))
    assert (fingerprint(values) != fingerprint(changed)).tolist() == [False, True, False]
    swapped = values.copy()
    swapped[0, 0, [0, 1]] = swapped[0, 0, [1, 0]]  # same values, other coefficient
    assert not np.array_equal(fingerprint(values), fingerprint(swapped))
