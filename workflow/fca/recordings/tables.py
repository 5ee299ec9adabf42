"""In: a table. Out: a CSV in an artifact, where the report finds it.

What a stage writes here is collected over all models into results/<analysis>/tables/.
"""

from pathlib import Path

import pandas as pd

TABLES = "tables"  # folder in an artifact


def write_table(into: Path, name: str, table: pd.DataFrame) -> None:
    (into / TABLES).mkdir(exist_ok=True)
    table.to_csv(into / TABLES / f"{name}.csv", index=False)
