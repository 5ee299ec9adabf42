"""In: losses with an intervention at some layers only. Out: its penalty layer by layer."""

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from fca.statistics.intervals import Bootstrap, by_document, cells, holm

COLUMNS = [
    "intervention", "order", "layer", "penalty", "penalty_low", "penalty_high", "p", "p_holm",
]  # fmt: skip


def by_layer(
    intervention: str,
    order: str,
    layers: NDArray,
    losses: NDArray,
    correct: NDArray,
    documents: NDArray,
    bootstrap: Bootstrap,
) -> pd.DataFrame:
    """One row per layer: the penalty (nats per token), its interval, and p values.

    losses [layer, input], repeats averaged; correct [input]. p_holm is corrected over the layers
    of the map.
    """
    inputs = by_document(np.ones(len(documents)), documents)
    more = [by_document(row - correct, documents) for row in losses]
    found = [bootstrap.ratio(m, inputs) for m in more]
    values = [penalty.p for penalty in found]
    rows = [
        [intervention, order, int(layer), *cells({"penalty": penalty}).values(), p, q]
        for layer, penalty, p, q in zip(layers, found, values, holm(values))
    ]
    frame = pd.DataFrame(rows, columns=COLUMNS, dtype=object)
    return frame.where(frame.notna(), "undefined")


def free(table: pd.DataFrame, threshold: float) -> list[int]:
    """Layers that can be frozen for free: those whose interval lies below a threshold, nats per token.

    table: one map's rows. ASSUME: free means that the whole interval is below the threshold, so
    that a wide interval never counts as free.
    """
    high = pd.to_numeric(table["penalty_high"], errors="coerce")
    return [int(layer) for layer in table.loc[high < threshold, "layer"]]
