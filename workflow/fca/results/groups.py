"""In: results. Out: one row per group and intervention, over its seeds and the documents at once."""

from collections.abc import Sequence

import numpy as np
import pandas as pd

from fca.results.results import Model, Results, number
from fca.results.sample_size import losses_of
from fca.statistics.effects import difference
from fca.statistics.hierarchy import Summary, over_seeds_and_documents
from fca.statistics.intervals import UNDEFINED, Bootstrap, cells

COLUMNS = [
    "model", "intervention", "quantity", "seeds", "documents", "value", "value_low", "value_high",
    "error_of_seeds", "error_of_documents", "error_of_repeats",
]  # fmt: skip


def hierarchy(results: Results) -> pd.DataFrame:
    """Penalty and retention of every intervention that all seeds of a group were replayed under.

    Columns as COLUMNS; error_of_... are standard errors by source, the repeats being the draws of
    a random intervention. Retention is undefined where the group's gap is not clearly above 0.
    """
    confidence = results.config["effects"]["confidence"]
    rows = []
    for name, models in results.groups.items():
        if not models[0].audited:
            continue
        losses = [losses_of(model, Bootstrap()) for model in models]
        shared = [i for i in losses[0].sums if all(i in one.sums for one in losses)]

        def summed(a: str, b: str, losses=losses) -> np.ndarray:
            return np.stack([one.total(difference(a, b)) for one in losses])

        inputs = np.stack([one.inputs for one in losses])
        gap = summed("global_mean", "correct") if "global_mean" in shared else None
        clear = gap is not None and over_seeds_and_documents(gap, inputs, confidence).estimate.above_zero
        for intervention in shared:
            noise = of_repeats(models, intervention)
            quantities: dict[str, tuple[np.ndarray, np.ndarray | None]] = {
                "penalty": (summed(intervention, "correct"), inputs),
                "retention": (summed("global_mean", intervention), gap) if clear else (inputs, None),
            }
            for quantity, (numerator, denominator) in quantities.items():
                summary, drawn = Summary(UNDEFINED), None
                if denominator is not None:
                    if noise is not None:
                        # of a penalty, in nats; of a share of the gap, relative to that
                        drawn = (noise[0] * float(inputs.sum() / denominator.sum()), noise[1])
                    summary = over_seeds_and_documents(numerator, denominator, confidence, drawn)
                errors = (summary.of_seeds, summary.of_documents, drawn and drawn[0])
                rows.append(
                    [
                        name, intervention, quantity, len(models), inputs.shape[1],
                        *cells({"value": summary.estimate}).values(),
                        *("undefined" if e is None else e for e in errors),
                    ]
                )  # fmt: skip
    return pd.DataFrame(rows, columns=COLUMNS)


def of_repeats(models: Sequence[Model], intervention: str) -> tuple[float, int] | None:
    """Standard error of a group's penalty due to the draws, and their number; None for one draw.

    ASSUME: all seeds share the draws, so their noise does not average out over the seeds.
    """
    rows = [m.table("effects").set_index("intervention").loc[intervention] for m in models]
    deviations = [number(row["repeat_sd"]) for row in rows]
    repeats = int(rows[0]["repeats"])
    squares = [sd**2 / repeats for sd in deviations if sd is not None]
    return (float(np.sqrt(np.mean(squares))), repeats) if len(squares) == len(rows) else None
