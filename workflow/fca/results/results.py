"""In: an analysis' index.json. Out: its artifacts as data frames with readable names."""

import json
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from fca.errors import FcaError
from fca.recordings.reading import open_recordings
from fca.recordings.tables import TABLES
from fca.statistics.intervals import TOO_FEW
from fca.store.artifacts import Store
from fca.store.manifest import Artifact


@dataclass(frozen=True)
class Model:
    """One trained model of the index. artifacts: by stage; recordings: by split, one per shard."""

    name: str
    kind: str
    seed: int
    artifacts: dict[str, Artifact]
    recordings: dict[str, list[Artifact]]

    @property
    def audited(self) -> bool:
        """Whether it has a controller and was therefore replayed."""
        return "effects" in self.artifacts

    def frame(self, artifact: str, file: str) -> pd.DataFrame:
        """A file of an artifact."""
        return pd.read_csv(self.artifacts[artifact].path / file)

    def table(self, artifact: str, name: str | None = None) -> pd.DataFrame:
        """A table that a stage wrote for people, by default the one named like the stage."""
        return self.frame(artifact, f"{TABLES}/{name or artifact}.csv")

    def json(self, artifact: str, file: str) -> dict[str, Any]:
        return json.loads((self.artifacts[artifact].path / file).read_text())

    def arrays(self, artifact: str, file: str) -> dict[str, np.ndarray]:
        with np.load(self.artifacts[artifact].path / file) as found:
            return dict(found)

    @cached_property
    def live_nll(self) -> float:
        """Mean live loss on the evaluation inputs, nats per token."""
        recording = open_recordings([artifact.path for artifact in self.recordings["evaluation"]])
        return float(recording["nll"].mean(dtype="float64"))


class Results:
    """Everything that the outputs of an analysis are made from."""

    def __init__(self, index: Path):
        try:
            self.index = json.loads(index.read_text())
        except (OSError, ValueError) as error:
            raise FcaError(f"{index}: cannot be read as an index ({error})") from None
        self.folder = index.parent
        self.store = Store(*self.index["stores"])
        self.config: dict[str, Any] = self.index["config"]
        self.models = [
            Model(
                entry["model"],
                entry["kind"],
                entry["seed"],
                {
                    stage: self._artifact(name)
                    for stage, name in entry["artifacts"].items()
                    if isinstance(name, str)
                },
                {
                    split: [self._artifact(name) for name in names]
                    for split, names in entry["artifacts"].items()
                    if isinstance(names, list)
                },
            )
            for entry in self.index["models"]
        ]
        self.inputs: dict[str, Any] = json.loads(
            (self._artifact(self.index["inputs"]).path / "inputs.json").read_text()
        )

    def _artifact(self, name: str) -> Artifact:
        stage, _, key = name.partition("/")
        return Artifact(self.store.path(stage, key))

    @property
    def audited(self) -> list[Model]:
        return [model for model in self.models if model.audited]

    @property
    def groups(self) -> dict[str, list[Model]]:
        """Models by name, one per training seed."""
        found: dict[str, list[Model]] = {}
        for model in self.models:
            found.setdefault(model.name, []).append(model)
        return found

    @property
    def tables(self) -> dict[str, list[str]]:
        """Names of the tables that stages wrote for people, by stage."""
        found = {stage: {stage} for stage in ("effects", "variance", "execution")}
        for model in self.audited:
            for stage, names in found.items():
                names |= {file.stem for file in (model.artifacts[stage].path / TABLES).glob("*.csv")}
        return {stage: sorted(names) for stage, names in found.items()}

    def table(self, artifact: str, name: str | None = None) -> pd.DataFrame:
        """A table of all audited models: model, kind, seed and the stage's columns."""
        frames = [
            model.table(artifact, name).assign(model=model.name, kind=model.kind, seed=model.seed)
            for model in self.audited
        ]
        if not frames:
            return pd.DataFrame(columns=["model", "kind", "seed"])
        found = pd.concat(frames, ignore_index=True)
        own = [c for c in found if c not in ("model", "kind", "seed")]
        return found[["model", "kind", "seed", *own]]


def number(value: Any) -> float | None:
    """A table's cell as a number; None where it says that there is none, or why."""
    found = pd.to_numeric(value, errors="coerce")
    return None if pd.isna(found) else float(found)


def note(value: Any) -> str:
    """Why a table's cell holds no bound of an interval; empty where it does."""
    return value if value == TOO_FEW else ""
