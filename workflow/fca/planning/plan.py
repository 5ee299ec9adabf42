"""In: a checked config. Out: every job of the audit with its key.

The plan is the only reader of the config. It is made in well under a second, without torch.
"""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from fca.errors import FcaError
from fca.interventions.lattice import names
from fca.models.kinds import IMPORTED, KINDS
from fca.planning.jobs import Job, Jobs
from fca.store.artifacts import Store
from fca.store.external import located

Entry = Mapping[str, Any]  # of the config's `models`


def is_imported(entry: Entry) -> bool:
    return "checkpoint" in entry or entry["kind"] in IMPORTED


class Plan:
    """All jobs of one analysis.

    inputs: the artifact of the inputs, `stage/key`. models: one entry per model (a training seed is
    a model of its own), which names all artifacts of its audit.
    """

    def __init__(self, config: Mapping[str, Any]):
        self.config = config
        self.store = Store(*(config.get("stores") or [config["store"]]))
        self.results = Path("results") / config["analysis"]
        self.jobs = Jobs(self.store)
        self.inputs = self._inputs()
        self.models = self._models()
        self.jobs.save_digests()
        self.absent = self.jobs.absent

    def _inputs(self) -> str:
        config = self.config["inputs"]
        text = {k: located(v) if k in ("source", "tokenizer") else v for k, v in config.items()}
        return self.jobs.add("inputs", text["corpus"], **text)

    def _models(self) -> list[dict[str, Any]]:
        config = self.config["models"]
        names = [entry["name"] for entry in config]
        if len(set(names)) < len(names):
            raise FcaError(f"config: models.name must differ, found {', '.join(names)}")
        seeded = [(entry, seed) for entry in config for seed in entry.get("seeds", [0])]
        made = [(entry, seed, self._model(entry, seed)) for entry, seed in seeded]
        found = []
        for entry, seed, model in made:
            artifacts = self._audit(entry, f"{entry['name']} seed {seed}", model, self._twin(entry, made))
            facts = {"model": entry["name"], "kind": entry["kind"], "seed": seed}
            found.append({**facts, "artifacts": artifacts})
        return found

    def _backbone(self, entry: Entry) -> dict[str, Any]:
        return {**self.config["backbone"], **entry.get("backbone", {})}

    def _model(self, entry: Entry, seed: int) -> str:
        """A model that is trained here, or one that is imported as it is."""
        if is_imported(entry):
            return self._import(entry)
        own = {k: v for k, v in entry.items() if k not in ("name", "kind", "seeds", "backbone", "training")}
        training = {**self.config["training"], **entry.get("training", {})}
        return self.jobs.add(
            "models",
            f"{entry['name']} seed {seed}",
            inputs=self.inputs,
            kind=entry["kind"],
            architecture={**self._backbone(entry), **own},
            seed=seed,
            **training,
        )

    def _import(self, entry: Entry) -> str:
        sites = entry.get("sites", "auto")
        return self.jobs.add(
            "imports",
            entry["name"],
            kind=entry["kind"],
            source=located(entry.get("checkpoint") or entry["factory"]),
            sites={"family": sites} if isinstance(sites, str) else dict(sites),
            options={k: entry[k] for k in ("trust_remote_code", "gguf_file") if k in entry},
        )

    def _twin(self, entry: Entry, made: Iterable[tuple[Entry, int, str]]) -> str | None:
        """The dense model of the same layers, width and heads, to compare execution with."""
        if is_imported(entry):
            return None
        for other, _, model in made:
            if other["kind"] == "dense" and self._backbone(other) == self._backbone(entry):
                return model
        return None

    def _audit(self, entry: Entry, title: str, model: str, dense: str | None) -> dict[str, Any]:
        """The artifacts of one model's audit, by what they are."""
        config, add = self.config, self.jobs.add
        passes = {k: config["passes"][k] for k in ("batch_size", "precision", "device")}
        passes["batch_size"] = 0 if passes["batch_size"] == "auto" else passes["batch_size"]
        count = config["passes"]["shards"]
        shards = {n: f", shard {n + 1} of {count}" if count > 1 else "" for n in range(count)}

        def record(split: str) -> list[str]:
            common = {"model": model, "inputs": self.inputs, "split": split, "shards": count, **passes}
            return [
                add("coefficients", f"{title}, {split}{of}", shard=shard, **common)
                for shard, of in shards.items()
            ]

        found: dict[str, Any] = {"models": model, "evaluation": record("evaluation")}
        if KINDS[entry["kind"]].static:
            return found
        evaluation, calibration = found["evaluation"], record("calibration")
        profiles = add("profiles", title, calibration=calibration)
        frozen = {
            "model": model,
            "evaluation": evaluation,
            "profiles": profiles,
            "seed": config["seed"],
            "device": passes["device"],
        }
        replays = {
            name + of: add(
                "replay",
                f"{title}, {name}{of}",
                intervention=name,
                repeats=config["repeats"],
                compared=config["divergence"]["inputs"],
                shard=shard,
                **frozen,
            )
            for name in names(config["interventions"], config["lattice"])
            for shard, of in shards.items()
        }
        maps = {
            f"{name}, {order}{of}": add(
                "layers",
                f"{title}, {name}, {order}{of}",
                intervention=name,
                order=order,
                repeats=config["layers"]["repeats"],
                shard=shard,
                **frozen,
            )
            for name in config["layers"]["interventions"]
            for order in config["layers"]["orders"]
            for shard, of in shards.items()
        }
        return found | {
            "calibration": calibration,
            "profiles": profiles,
            "replay": replays,
            "layers": maps,
            "variance": add(
                "variance",
                title,
                evaluation=evaluation,
                profiles=profiles,
                seed=config["seed"],
                **config["effects"],
            ),
            "effects": add(
                "effects",
                title,
                calibration=calibration,
                evaluation=evaluation,
                replays=tuple(replays.values()),
                maps=tuple(maps.values()),
                seed=config["seed"],
                **config["effects"],
            ),
            "execution": add(
                "execution",
                title,
                dense=dense,
                batch_size=min(config["execution"]["batch_size"], config["inputs"]["evaluation"]),
                rounds=config["execution"]["rounds"],
                **frozen,
            ),
        }

    def job(self, stage: str, key: str) -> Job:
        return self.jobs[f"{stage}/{key}"]

    def targets(self, stage: str) -> list[str]:
        """Manifests of all artifacts of a stage."""
        return [self.jobs.manifest(job.name) for job in self.jobs.of(stage)]
