"""In: results. Out: one row per family and intervention, over its seeds and the documents at once."""

from collections.abc import Sequence

import numpy as np
import pandas as pd

from fca.arithmetic.effects import difference
from fca.arithmetic.hierarchy import Summary, over_seeds_and_documents
from fca.arithmetic.intervals import UNDEFINED, Bootstrap, cells
from fca.output.power import losses_of
from fca.output.results import Model, Results, number

COLUMNS = [
    "model", "intervention", "quantity", "seeds", "documents", "value", "value_low", "value_high",
    "error_of_seeds", "error_of_documents", "error_of_repeats",
]  # fmt: skip


def hierarchy(results: Results) -> pd.DataFrame:
    """Penalty and retention of every intervention that all seeds of a family were replayed under.

    Columns as COLUMNS; error_of_... are standard errors by source. That of the repeats (draws of a
    random intervention) is part of that of the documents, and shown to judge their number.
    Retention is undefined where the family's gap is not clearly above 0.
    """
    confidence = results.config["effects"]["confidence"]
    rows = []
    for name, models in results.families.items():
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
            found = {
                "penalty": over_seeds_and_documents(summed(intervention, "correct"), inputs, confidence),
                "retention": over_seeds_and_documents(summed("global_mean", intervention), gap, confidence)
                if clear and gap is not None
                else Summary(UNDEFINED),
            }
            noise = of_repeats(models, intervention)
            scale = {
                "penalty": 1.0,
                "retention": float(np.sum(gap) / np.sum(inputs)) if clear and gap is not None else 1.0,
            }
            for quantity, summary in found.items():
                drawn = None if noise is None or summary.estimate.value is None else noise / scale[quantity]
                errors = (summary.of_seeds, summary.of_documents, drawn)
                rows.append(
                    [
                        name, intervention, quantity, len(models), inputs.shape[1],
                        *cells({"value": summary.estimate}).values(),
                        *("undefined" if e is None else e for e in errors),
                    ]
                )  # fmt: skip
    return pd.DataFrame(rows, columns=COLUMNS)


def of_repeats(models: Sequence[Model], intervention: str) -> float | None:
    """Standard error of a family's penalty due to the draws; None with a single draw.

    ASSUME: all seeds share the draws, so their noise does not average out over the seeds.
    """
    rows = [m.frame("effects", "effects.csv").set_index("intervention").loc[intervention] for m in models]
    squares = [(number(row["repeat_sd"]), row["repeats"]) for row in rows]
    known = [sd**2 / repeats for sd, repeats in squares if sd is not None]
    return float(np.sqrt(np.mean(known))) if len(known) == len(rows) else None
