"""What all tests share: tiny models and tokens."""

import numpy as np
import pytest
from tiny import build
from torch import nn


@pytest.fixture
def featuregate_model() -> nn.Module:
    return build("featuregate")


@pytest.fixture
def mudd_model() -> nn.Module:
    return build("mudd")


@pytest.fixture
def tokens() -> np.ndarray:
    return np.random.default_rng(0).integers(0, 50, size=(10, 16))


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(7)
