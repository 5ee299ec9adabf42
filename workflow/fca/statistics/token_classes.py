"""In: per-token losses, live and replayed. Out: the penalty by position and by token frequency."""

from collections.abc import Mapping

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from fca.statistics.intervals import Bootstrap, by_document, cells

COLUMNS = ["intervention", "from", "to", "tokens", "penalty", "penalty_low", "penalty_high"]


def position_classes(targets: NDArray) -> tuple[NDArray[np.int64], list[tuple[int, int]]]:
    """Class of each predicted position, and the classes' first and last: 1, 2-3, 4-7, 8-15, ...

    ASSUME: doubling classes, since what is special about a window's start fades with the distance.
    """
    classes = np.floor(np.log2(targets)).astype(np.int64)
    last = int(targets.max())
    return classes, [(2**k, min(2 ** (k + 1) - 1, last)) for k in range(int(classes.max()) + 1)]


def frequency_classes(
    predicted: NDArray, calibration: NDArray
) -> tuple[NDArray[np.int64], list[tuple[int, int]]]:
    """Class of each predicted token by its count in the calibration text: 0, 1-9, 10-99, ...

    ASSUME: counted in the calibration text, which shares no document with the evaluated one.
    """
    size = int(max(predicted.max(), calibration.max())) + 1
    counts = np.bincount(calibration.ravel(), minlength=size)[predicted]
    classes = np.where(counts > 0, 1 + np.floor(np.log10(np.maximum(counts, 1))), 0).astype(np.int64)
    bounds = [(0, 0), *((10**k, 10 ** (k + 1) - 1) for k in range(int(classes.max())))]
    return classes, bounds


def penalties(
    losses: Mapping[str, NDArray],
    classes: NDArray[np.int64],
    bounds: list[tuple[int, int]],
    documents: NDArray,
    bootstrap: Bootstrap,
) -> pd.DataFrame:
    """Penalty within each class of predicted tokens, nats per token of the class.

    losses[name] and classes are [input, target]; "correct" must be among the losses. Columns
    intervention, from and to (the class's bounds), tokens (how many), penalty with its interval;
    classes without tokens are left out.
    """
    classes = np.broadcast_to(classes, losses["correct"].shape)
    members = [classes == k for k in range(len(bounds))]
    rows = []
    for name, values in losses.items():
        if name == "correct":
            continue
        more = values.astype(np.float64) - losses["correct"]
        for member, (first, last) in zip(members, bounds):
            if not member.any():
                continue
            found = bootstrap.ratio(
                by_document((more * member).sum(axis=1), documents),
                by_document(member.sum(axis=1), documents),
            )
            rows.append([name, first, last, int(member.sum()), *cells({"penalty": found}).values()])
    return pd.DataFrame(rows, columns=COLUMNS)
