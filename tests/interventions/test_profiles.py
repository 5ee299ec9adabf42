"""Static profiles and oracles are the means that their names say."""

import numpy as np
import pytest

from fca.errors import FcaError
from fca.interventions.profiles import ORACLES, PROFILES, oracle, profile


def test_profiles_are_the_means_that_their_names_say(rng):
    values = rng.normal(size=(6, 4, 3))
    mean = values.mean(axis=0)
    assert np.allclose(profile("global_mean", mean), values.mean())
    assert np.allclose(profile("layer_mean", mean), values.mean(axis=(0, 1))[None, :])
    assert np.allclose(profile("token_mean", mean), values.mean(axis=(0, 2))[:, None])
    assert np.allclose(profile("layer_token_mean", mean), values.mean(axis=0))
    assert np.allclose(oracle("input_layer_mean", values), values.mean(axis=1, keepdims=True))
    assert np.allclose(oracle("input_mean", values), values.mean(axis=(1, 2), keepdims=True))
    assert np.allclose(oracle("input_token_mean", values), values.mean(axis=2, keepdims=True))


@pytest.mark.parametrize("name", PROFILES)
def test_profile_of_a_profile_is_itself(name, rng):
    layers = [0, 0, 1]
    once = profile(name, rng.normal(size=(4, 3)), layers)
    assert np.allclose(profile(name, once, layers), once)


def test_unknown_profile():
    with pytest.raises(FcaError, match="known: global_mean"):
        profile("layers_mean", np.zeros((2, 2)))
    assert set(ORACLES).isdisjoint(PROFILES)
