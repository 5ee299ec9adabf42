"""In: a checkpoint and its evaluation recording. Out: the frozen model, and coefficients to replay.

What the stages that replay have in common: how the recording is taken up again, and where the
coefficients of an intervention come from, batch by batch.
"""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
import xarray as xr
from numpy.typing import NDArray
from torch import nn

from fca.arithmetic.interventions import draw, is_random
from fca.arithmetic.multiset import fingerprint
from fca.arithmetic.profiles import ORACLES, PROFILES, oracle, profile
from fca.artifacts.recording import array, labels_of, open_recording, reader
from fca.errors import FcaError, ProofError
from fca.networks.checkpoint import load_checkpoint
from fca.networks.passes import batches
from fca.networks.sites import Form, Site

Source = Callable[[slice], NDArray]  # inputs -> coefficients [batch, token, coefficient]


@dataclass(frozen=True)
class Frozen:
    """A model, its sites, and the recording whose batches a replay has to repeat.

    tokens [input, token]; layers [coefficient]; read(inputs) gives recorded coefficients.
    """

    network: nn.Module
    sites: Sequence[Site]
    forms: Sequence[Sequence[Form]]
    recording: xr.Dataset
    read: Callable[[NDArray], NDArray]
    tokens: NDArray
    layers: NDArray
    batch_size: int

    @classmethod
    def open(cls, model: Path, evaluation: Path, device: str) -> "Frozen":
        """Load with the recording's precision and threads, so that a replay can be exact."""
        recording = open_recording(evaluation / "recording.zarr")
        facts = recording.attrs
        torch.set_num_threads(facts["threads"])
        network, sites = load_checkpoint(model, device, facts["precision"])
        return cls(
            network,
            sites,
            [[Form(f["token"], tuple(f["shape"]), f["dtype"]) for f in calls] for calls in facts["forms"]],
            recording,
            reader(evaluation / "recording.zarr"),
            recording["tokens"].values,
            recording["layer"].values,
            facts["batch_size"],
        )

    @property
    def slices(self) -> list[slice]:
        return batches(len(self.tokens), self.batch_size)

    def correct(self, inputs: slice) -> NDArray:
        """The recorded coefficients as they are."""
        return self.read(np.arange(inputs.start, inputs.stop))

    def sources(self, intervention: str, profiles: Path, repeats: int, seed: int) -> list[Source]:
        """The coefficients of every draw of an intervention; one draw where nothing is random.

        Raises Undefined where the intervention is not defined for this model, and ProofError
        where a reassignment changed a coefficient's multiset.
        """
        if intervention in ORACLES:
            oracle(intervention, self.read(np.arange(1)), self.layers)  # Undefined now, not within a pass
            return [lambda inputs: oracle(intervention, self.correct(inputs), self.layers)]
        if intervention in PROFILES:
            values = profile(intervention, self.mean(profiles), self.layers)
            return [lambda inputs: np.broadcast_to(values, (inputs.stop - inputs.start, *values.shape))]
        draws = repeats if is_random(intervention) else 1
        return [self.reassigned(intervention, seed + repeat) for repeat in range(draws)]

    def mean(self, profiles: Path) -> NDArray[np.float64]:
        """The calibration mean [token, coefficient]. Raises FcaError where it is another model's."""
        mean = np.asarray(array(profiles / "profiles.zarr", "mean")[...])
        expected = self.read(np.arange(1)).shape[1:]
        if mean.shape != expected:
            raise FcaError(f"the profile is {mean.shape} [token, coefficient], the recording {expected}")
        return mean

    def reassigned(self, intervention: str, seed: int) -> Source:
        """One draw of a reassignment; what it holds is compared with the cache first."""
        assignment = draw(intervention, labels_of(self.recording), seed)

        def source(inputs: slice) -> NDArray:
            return assignment.gather(self.read, np.arange(inputs.start, inputs.stop))

        before = np.stack([fingerprint(self.correct(s)) for s in self.slices]).sum(axis=0)
        after = np.stack([fingerprint(source(s)) for s in self.slices]).sum(axis=0)
        places = np.arange(len(self.layers))
        order = places if assignment.coefficients is None else assignment.coefficients
        if not np.array_equal(np.sort(order), places):
            raise ProofError(f"multisets: {intervention} uses a coefficient twice and leaves one out")
        wrong = np.flatnonzero(after != before[order])
        if len(wrong):
            raise ProofError(f"multisets: {intervention} changed the values of coefficient {wrong[0]}")
        return source


def is_static(intervention: str) -> bool:
    return intervention in PROFILES or intervention in ORACLES


def write_proofs(into: Path, proofs: dict) -> None:
    (into / "proofs.json").write_text(json.dumps(proofs, indent=1) + "\n")
