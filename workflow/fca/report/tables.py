"""In: an analysis' plan. Out: tables/*.csv, one tidy row each, claims.json and index.json."""

import json
from pathlib import Path

import pandas as pd

from fca.report.claims import claims
from fca.results.groups import hierarchy
from fca.results.results import Results, number
from fca.statistics.effects import over_seeds


def write_tables(plan: Path) -> None:
    """The stages' tables by model and seed; groups over seeds and documents; the claims.

    Last, the plan becomes the index: everything that it names is there now.
    """
    results = Results(plan)
    folder = results.folder / "tables"
    folder.mkdir(parents=True, exist_ok=True)
    for stage, names in results.tables.items():
        for name in names:
            results.table(stage, name).to_csv(folder / f"{name}.csv", index=False)
    groups(results.table("effects")).to_csv(folder / "groups.csv", index=False)
    hierarchy(results).to_csv(folder / "hierarchy.csv", index=False)
    text = json.dumps(claims(results), indent=1) + "\n"
    (results.folder / "claims.json").write_text(text)
    (results.folder / "index.json").write_text(plan.read_text())


def groups(effects: pd.DataFrame) -> pd.DataFrame:
    """Per model and intervention: n, mean, standard deviation and t interval over seeds.

    Undefined where any seed's value is, or, for deviation and interval, with a single seed.
    """
    rows = []
    if effects.empty:
        return pd.DataFrame(columns=["model", "intervention", "quantity", "n", "mean", "sd", "low", "high"])
    for (model, intervention), group in effects.groupby(["model", "intervention"], sort=False):
        for quantity in ("nll", "penalty", "retention"):
            values = [number(v) for v in group[quantity]]
            if None in values:
                summary: dict = {"n": len(values), **dict.fromkeys(("mean", "sd", "low", "high"))}
            else:
                summary = over_seeds([v for v in values if v is not None])
            shown = {k: "undefined" if v is None else v for k, v in summary.items()}
            rows.append({"model": model, "intervention": intervention, "quantity": quantity, **shown})
    return pd.DataFrame(rows)
