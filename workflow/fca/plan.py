"""In: a checked config. Out: every job of the audit with its key.

The plan is the only reader of the config. It is made in well under a second, without torch.
"""

import shlex
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fca.arithmetic.lattice import names
from fca.artifacts.external import located
from fca.artifacts.store import MANIFEST, Store
from fca.binding import memory_of, options, recipe
from fca.errors import FcaError
from fca.networks.kinds import IMPORTED, STATIC


@dataclass(frozen=True)
class Job:
    """One artifact to be made. label: what a person calls it."""

    stage: str
    key: str
    label: str
    arguments: Mapping[str, Any]
    reads: Mapping[str, tuple[str, ...]]  # argument -> upstream `stage/key`

    @property
    def name(self) -> str:
        return f"{self.stage}/{self.key}"


def is_imported(entry: Mapping[str, Any]) -> bool:
    return "checkpoint" in entry or entry["kind"] in IMPORTED


class Plan:
    """All jobs of one analysis, by `stage/key`."""

    def __init__(self, config: Mapping[str, Any]):
        self.config = config
        self.store = Store(*(config.get("stores") or [config["store"]]))
        self.results = Path("results") / config["analysis"]
        self.jobs: dict[str, Job] = {}
        self.models: list[dict[str, Any]] = []  # the index: one entry per trained model
        self._digests = memory_of(self.store)
        self._build()
        self._digests.save()
        #: for a person: what is not on this machine, so that only what was made from it is there
        self.absent = [
            f"{name} is not on this machine: artifacts made from it before are used, none can be made"
            for name in sorted(self._digests.absent)
        ]

    def _add(self, stage: str, label: str, **arguments: Any) -> str:
        found = recipe(stage, arguments, self._digests)
        reads = {
            name: tuple(value) if isinstance(value, tuple | list) else (value,)
            for name, value in found.reads.items()
            if value
        }
        job = Job(stage, found.key, label, arguments, reads)
        # Two models can share a job; the first name is kept, the content is the same.
        self.jobs.setdefault(job.name, job)
        return job.name

    def _build(self) -> None:
        config = self.config
        text = {k: located(v) if k in ("source", "tokenizer") else v for k, v in config["inputs"].items()}
        inputs = self._add("inputs", text["corpus"], **text)
        self.inputs = inputs
        entries = [(entry, seed) for entry in config["models"] for seed in entry.get("seeds", [0])]
        names = [entry["name"] for entry in config["models"]]
        if len(set(names)) < len(names):
            raise FcaError(f"config: models.name must differ, found {', '.join(names)}")
        trained = [(entry, seed, self._model(entry, seed, inputs)) for entry, seed in entries]
        for entry, seed, model in trained:
            self._audit(entry, seed, model, inputs, self._twin(entry, trained))

    def _backbone(self, entry: Mapping[str, Any]) -> dict[str, Any]:
        return {**self.config["backbone"], **entry.get("backbone", {})}

    def _model(self, entry: Mapping[str, Any], seed: int, inputs: str) -> str:
        """A model that is trained here, or one that is imported as it is."""
        if is_imported(entry):
            return self._import(entry)
        own = {k: v for k, v in entry.items() if k not in ("name", "kind", "seeds", "backbone", "training")}
        training = {**self.config["training"], **entry.get("training", {})}
        return self._add(
            "models",
            f"{entry['name']} seed {seed}",
            inputs=inputs,
            kind=entry["kind"],
            architecture={**self._backbone(entry), **own},
            seed=seed,
            **training,
        )

    def _import(self, entry: Mapping[str, Any]) -> str:
        sites = entry.get("sites", "auto")
        return self._add(
            "imports",
            entry["name"],
            kind=entry["kind"],
            source=located(entry.get("checkpoint") or entry["factory"]),
            sites={"family": sites} if isinstance(sites, str) else dict(sites),
            options={k: entry[k] for k in ("trust_remote_code", "gguf_file") if k in entry},
        )

    def _twin(self, entry: Mapping[str, Any], trained: Iterable[tuple]) -> str | None:
        """The dense model of the same layers, width and heads, to compare execution with."""
        if is_imported(entry):
            return None
        for other, _, model in trained:
            if other["kind"] == "dense" and self._backbone(other) == self._backbone(entry):
                return model
        return None

    def _audit(self, entry: Mapping, seed: int, model: str, inputs: str, dense: str | None) -> None:
        config, label = self.config, f"{entry['name']} seed {seed}"
        passes = {k: config["passes"][k] for k in ("batch_size", "precision", "device")}
        passes["batch_size"] = 0 if passes["batch_size"] == "auto" else passes["batch_size"]
        found: dict[str, Any] = {
            "model": entry["name"],
            "kind": entry["kind"],
            "seed": seed,
            "artifacts": {"models": model},
        }
        artifacts = found["artifacts"]
        self.models.append(found)

        shards = range(config["passes"]["shards"])

        def of(shard: int) -> str:
            return f", shard {shard + 1} of {len(shards)}" if len(shards) > 1 else ""

        def record(split: str) -> list[str]:
            return [
                self._add(
                    "coefficients",
                    f"{label}, {split}{of(shard)}",
                    model=model,
                    inputs=inputs,
                    split=split,
                    shard=shard,
                    shards=len(shards),
                    **passes,
                )
                for shard in shards
            ]

        artifacts["evaluation"] = evaluation = record("evaluation")
        if entry["kind"] in STATIC:
            return
        artifacts["calibration"] = calibration = record("calibration")
        artifacts["profiles"] = profiles = self._add("profiles", label, calibration=calibration)
        frozen = {
            "model": model,
            "evaluation": evaluation,
            "profiles": profiles,
            "seed": config["seed"],
            "device": passes["device"],
        }
        artifacts["replay"] = replays = {
            name + of(shard): self._add(
                "replay",
                f"{label}, {name}{of(shard)}",
                intervention=name,
                repeats=config["repeats"],
                compared=config["divergence"]["inputs"],
                shard=shard,
                **frozen,
            )
            for name in self._interventions()
            for shard in shards
        }
        artifacts["layers"] = maps = {
            f"{name}, {order}{of(shard)}": self._add(
                "layers",
                f"{label}, {name}, {order}{of(shard)}",
                intervention=name,
                order=order,
                repeats=config["layers"]["repeats"],
                shard=shard,
                **frozen,
            )
            for name in config["layers"]["interventions"]
            for order in config["layers"]["orders"]
            for shard in shards
        }
        artifacts["variance"] = self._add(
            "variance", label, evaluation=evaluation, profiles=profiles, **config["effects"]
        )
        artifacts["effects"] = self._add(
            "effects",
            label,
            calibration=calibration,
            evaluation=evaluation,
            replays=tuple(replays.values()),
            maps=tuple(maps.values()),
            seed=config["seed"],
            **config["effects"],
        )
        artifacts["execution"] = self._add(
            "execution",
            label,
            dense=dense,
            batch_size=min(config["execution"]["batch_size"], config["inputs"]["evaluation"]),
            rounds=config["execution"]["rounds"],
            **frozen,
        )

    def _interventions(self) -> list[str]:
        """The configured ones by name, `correct` first."""
        return names(self.config["interventions"], self.config["lattice"])

    def job(self, stage: str, key: str) -> Job:
        try:
            return self.jobs[f"{stage}/{key}"]
        except KeyError:
            raise FcaError(f"no job {stage}/{key} in the analysis {self.config['analysis']!r}") from None

    def manifest(self, name: str) -> str:
        """Of an artifact by its `stage/key`: where it is, or will be made."""
        return str(self.store.path(*name.split("/")) / MANIFEST)

    def targets(self, stage: str) -> list[str]:
        """Manifests of all artifacts of a stage."""
        return [self.manifest(job.name) for job in self.jobs.values() if job.stage == stage]

    def options(self, job: Job) -> str:
        """What to put behind `fca STAGE` to run a job alone."""
        stores = " ".join(f"--store {shlex.quote(str(root))}" for root in self.store.layers)
        return f"{stores} --key {job.key} {options(job.stage, job.arguments)}"
