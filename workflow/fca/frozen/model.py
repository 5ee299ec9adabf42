"""In: a checkpoint and its recording. Out: the frozen model, and the coefficients to replay on it.

How a recording is taken up again, and where the coefficients of an intervention come from, batch
by batch.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
import xarray as xr
from numpy.typing import NDArray
from torch import nn

from fca.controllers.forms import Form, continuous, forms_from
from fca.controllers.sites import Site
from fca.errors import FcaError, ProofError, Undefined
from fca.frozen.passes import CoefficientsOf, batches
from fca.interventions.assignments import Labels
from fca.interventions.draws import draw, is_random
from fca.interventions.multiset import Multisets, fingerprint
from fca.interventions.profiles import ORACLES, PROFILES, oracle, profile
from fca.models.checkpoint import load_checkpoint
from fca.recordings.reading import array, labels_of, open_recording, open_recordings, reader
from fca.recordings.writing import RECORDING


@dataclass(frozen=True)
class FrozenModel:
    """A model, its sites, and the recording whose batches a replay has to repeat.

    recording: of the inputs to replay, which can be one shard of the set; tokens [input, token] are
    its. read(inputs) gives recorded coefficients of any input of the whole set, since donors can
    lie in other shards; labels are the whole set's, and first is where the shard begins in it.
    Sources take inputs as the shard counts them. layers [coefficient].
    """

    network: nn.Module
    sites: Sequence[Site]
    forms: Sequence[Sequence[Form]]
    recording: xr.Dataset
    labels: Labels
    first: int
    read: Callable[[NDArray], NDArray]
    tokens: NDArray
    layers: NDArray
    batch_size: int

    @classmethod
    def open(
        cls, model: Path, evaluation: Sequence[Path], device: str, shard: int | None = None
    ) -> "FrozenModel":
        """Load with the recording's precision and threads, so that a replay can be exact.

        evaluation: the shards of the recording. shard: the one to replay; None for all of them.
        """
        whole = open_recordings(evaluation)
        recording = whole if shard is None else open_recording(evaluation[shard] / RECORDING)
        before = [] if shard is None else evaluation[:shard]
        facts = recording.attrs
        torch.set_num_threads(facts["threads"])
        network, sites = load_checkpoint(model, device, facts["precision"])
        return cls(
            network,
            sites,
            forms_from(facts["forms"]),
            recording,
            labels_of(whole),
            sum(open_recording(folder / RECORDING).sizes["input"] for folder in before),
            reader(evaluation),
            recording["tokens"].values,
            recording["layer"].values,
            facts["batch_size"],
        )

    @property
    def slices(self) -> list[slice]:
        return batches(len(self.tokens), self.batch_size)

    @property
    def whole(self) -> bool:
        """Whether all inputs of the set are replayed here."""
        return len(self.tokens) == len(self.labels.documents)

    def places(self, inputs: slice) -> NDArray:
        """Where the shard's inputs are in the whole set."""
        return self.first + np.arange(inputs.start, inputs.stop)

    def correct(self, inputs: slice) -> NDArray:
        """The recorded coefficients as they are."""
        return self.read(self.places(inputs))

    def sources(
        self, intervention: str, profiles: Path, repeats: int, seed: int
    ) -> tuple[list[CoefficientsOf], list[Multisets]]:
        """The coefficients of every draw of an intervention, one draw where nothing is random, and
        for reassignments the multisets that the draws keep.

        Raises Undefined where the intervention is not defined for this model, and ProofError
        where a reassignment of the whole set changed a coefficient's multiset.
        """
        whole_numbers = not all(continuous(form) for calls in self.forms for form in calls)
        if whole_numbers and intervention in (ORACLES | PROFILES):
            raise Undefined(f"{intervention} is a mean, but a controller here emits whole numbers only")
        if intervention in ORACLES:
            oracle(intervention, self.read(np.arange(1)), self.layers)  # Undefined now, not within a pass
            return [lambda inputs: oracle(intervention, self.correct(inputs), self.layers)], []
        if intervention in PROFILES:
            values = profile(intervention, self.mean(profiles), self.layers)
            return [lambda inputs: np.broadcast_to(values, (inputs.stop - inputs.start, *values.shape))], []
        draws = repeats if is_random(intervention) else 1
        found = [self.reassigned(intervention, seed + repeat) for repeat in range(draws)]
        return [source for source, _ in found], [kept for _, kept in found]

    def mean(self, profiles: Path) -> NDArray[np.float64]:
        """The calibration mean [token, coefficient]. Raises FcaError where it is another model's."""
        mean = np.asarray(array(profiles / "profiles.zarr", "mean")[...])
        expected = self.read(np.arange(1)).shape[1:]
        if mean.shape != expected:
            raise FcaError(f"the profile is {mean.shape} [token, coefficient], the recording {expected}")
        return mean

    def reassigned(self, intervention: str, seed: int) -> tuple[CoefficientsOf, Multisets]:
        """One draw of a reassignment; what it holds is compared with the cache first."""
        assignment = draw(intervention, self.labels, seed)

        def source(inputs: slice) -> NDArray:
            return assignment.gather(self.read, self.places(inputs))

        before = np.stack([fingerprint(self.correct(s)) for s in self.slices]).sum(axis=0)
        after = np.stack([fingerprint(source(s)) for s in self.slices]).sum(axis=0)
        places = np.arange(len(self.layers))
        order = places if assignment.coefficients is None else assignment.coefficients
        if not np.array_equal(np.sort(order), places):
            raise ProofError(f"multisets: {intervention} uses a coefficient twice and leaves one out")
        kept = Multisets(before[order], after)
        if self.whole:
            kept.check(intervention)
        return source, kept
