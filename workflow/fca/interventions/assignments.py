"""Where each coefficient is taken from, as indices, and what is needed to draw them.

Indices only, so that arrays larger than memory are rearranged batch by batch.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Indices = NDArray[np.int64]


@dataclass(frozen=True)
class Labels:
    """What a reassignment needs to know: documents [input], number of tokens, layers [coefficient]."""

    documents: Indices
    tokens: int
    layers: Indices


@dataclass(frozen=True)
class Assignment:
    """For every place the place its coefficient comes from; None leaves that axis alone.

    donors [input]; tokens [input, token] or [input, token, coefficient]; coefficients [coefficient].
    """

    donors: Indices | None = None
    tokens: Indices | None = None
    coefficients: Indices | None = None

    def gather(self, read: Callable[[Indices], NDArray], inputs: Indices) -> NDArray:
        """Reassigned coefficients [len(inputs), token, coefficient].

        read(inputs) returns the cached coefficients of those inputs in that order.
        """
        values = read(inputs if self.donors is None else self.donors[inputs])
        if self.tokens is not None:
            order = self.tokens[inputs]
            if order.ndim == 2:
                order = order[:, :, None]
            values = np.take_along_axis(values, order, axis=1)
        return values if self.coefficients is None else values[:, :, self.coefficients]
