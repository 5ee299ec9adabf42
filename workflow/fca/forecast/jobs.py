"""In: a plan. Out: what each of its jobs needs, and what is there already."""

import json
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

from fca.errors import FcaError
from fca.forecast.by_stage import needs
from fca.forecast.model_sizes import imported, trained
from fca.forecast.needs import OUTPUT, Needs, Text
from fca.inputs.corpus import files
from fca.models.sizes import Sizes
from fca.planning.jobs import Job
from fca.planning.plan import Plan

# ASSUME: four bytes of text per token where the tokenizer is not `bytes`, and GPT-2's vocabulary
# where it cannot be read yet.
BYTES_PER_TOKEN, VOCABULARY = 4, 50_257


class Forecast:
    """Needs of the jobs of one plan."""

    def __init__(self, plan: Plan):
        self.plan = plan
        self.sizes: dict[str, Sizes] = {}  # of models, by the job that makes or imports them

    @cached_property
    def facts(self) -> dict[str, Any]:
        """What extracting the inputs has told, where it was done."""
        try:
            artifact = Path(self.plan.jobs.manifest(self.plan.inputs)).parent
            return json.loads((artifact / "inputs.json").read_text())
        except OSError:
            return {}

    @property
    def vocabulary(self) -> int:
        own = 256 if self.plan.config["inputs"]["tokenizer"] == "bytes" else VOCABULARY
        return self.facts.get("vocabulary", own)

    @cached_property
    def text(self) -> Text:
        config = self.plan.config["inputs"]
        arguments = self.plan.jobs[self.plan.inputs].arguments
        try:
            corpus = sum(path.stat().st_size for _, path in files(arguments["source"], config["corpus"]))
        except (FcaError, OSError):
            corpus = 0
        per_token = 1 if config["tokenizer"] == "bytes" else BYTES_PER_TOKEN
        tokens, share = corpus / per_token, config["split"]
        return Text(
            length=config["length"],
            calibration=config["calibration"],
            evaluation=config["evaluation"],
            training_tokens=self.facts.get("training_tokens", tokens * share["training"]),
            cut_tokens=tokens * (share["calibration"] + share["evaluation"]),
            corpus=corpus,
            token_bytes=2 if self.vocabulary <= 65536 else 4,
        )

    def model(self, name: str) -> Sizes:
        """Sizes of the model that a job makes or imports. name: its `stage/key`."""
        if name not in self.sizes:
            arguments = self.plan.jobs[name].arguments
            if name.startswith("imports/"):
                found = imported(arguments["kind"], arguments["source"], arguments["sites"])
            else:
                own = {"vocabulary": self.vocabulary, **arguments["architecture"]}
                found = trained(arguments["kind"], own)
            self.sizes[name] = found
        return self.sizes[name]

    def model_of(self, job: Job) -> str | None:
        """The job that made a job's model: itself, what it reads, or what its recording read."""
        if job.stage in ("models", "imports"):
            return job.name
        if "model" in job.reads:
            return job.reads["model"][0]
        recording = self.recording(job)
        return recording.reads["model"][0] if recording else None

    def recording(self, job: Job) -> Job | None:
        """The recording a job reads; the evaluation set's where there are two."""
        for argument in ("evaluation", "calibration"):
            if argument in job.reads:
                return self.plan.jobs[job.reads[argument][0]]
        return None

    def arguments(self, job: Job) -> Mapping[str, Any]:
        """A job's own, and batches and precision of the recording that it reads."""
        recording = self.recording(job)
        return {**(recording.arguments if recording else {}), **job.arguments}

    def needs(self, job: Job) -> Needs:
        model = self.model_of(job)
        return needs(job.stage, self.arguments(job), self.model(model) if model else None, self.text)

    def needs_of(self, stage: str, wildcards: Any) -> Needs:
        """What a rule's job needs; tables, figures and the report are jobs of the stage `output`."""
        return OUTPUT if stage == "output" else self.needs(self.plan.job(stage, wildcards.key))

    def minutes(self, stage: str, wildcards: Any, threads: int, attempt: int) -> int:
        """The time limit of a rule's job."""
        job = None if stage == "output" else self.plan.job(stage, wildcards.key)
        own = self.arguments(job) if job else {}
        device, precision = own.get("device", "cpu"), own.get("precision", "float32")
        return self.needs_of(stage, wildcards).minutes(threads, device, precision, attempt)

    def there(self, job: Job) -> bool:
        return Path(self.plan.jobs.manifest(job.name)).is_file()
