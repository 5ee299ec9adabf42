"""In: a stage and its arguments. Out: a job with its key; all jobs of an analysis, each once."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from fca.errors import FcaError
from fca.planning.recipe import digests_of, recipe
from fca.store.artifacts import Store
from fca.store.manifest import MANIFEST


@dataclass(frozen=True)
class Job:
    """One artifact to be made.

    title: what a person calls it. reads: argument -> upstream artifacts as `stage/key`.
    """

    stage: str
    key: str
    title: str
    arguments: Mapping[str, Any]
    reads: Mapping[str, tuple[str, ...]]

    @property
    def name(self) -> str:
        return f"{self.stage}/{self.key}"


class Jobs:
    """The jobs whose artifacts an analysis consists of, by `stage/key`."""

    def __init__(self, store: Store):
        self.store = store
        self._digests = digests_of(store)
        self._known: dict[str, Job] = {}

    def add(self, stage: str, title: str, **arguments: Any) -> str:
        """Plan an artifact and return its `stage/key`.

        Two models can share a job; the first title is kept, the content is the same.
        """
        found = recipe(stage, arguments, self._digests)
        reads = {
            name: (value,) if isinstance(value, str) else tuple(value)
            for name, value in found.reads.items()
            if value
        }
        job = Job(stage, found.key, title, arguments, reads)
        self._known.setdefault(job.name, job)
        return job.name

    def __iter__(self) -> Iterator[Job]:
        return iter(self._known.values())

    def __getitem__(self, name: str) -> Job:
        """By `stage/key`."""
        try:
            return self._known[name]
        except KeyError:
            raise FcaError(f"no job {name} in this analysis") from None

    def of(self, stage: str) -> list[Job]:
        return [job for job in self if job.stage == stage]

    def manifest(self, name: str) -> str:
        """Of an artifact by its `stage/key`: where it is, or will be made."""
        return str(self.store.path(*name.split("/")) / MANIFEST)

    def save_digests(self) -> None:
        """Keep what was learnt of external files for the next plan."""
        self._digests.save()

    @property
    def absent(self) -> list[str]:
        """For a person: what is not on this machine, so that only what was made from it is there."""
        return [
            f"{name} is not on this machine: artifacts made from it before are used, none can be made"
            for name in sorted(self._digests.absent)
        ]
