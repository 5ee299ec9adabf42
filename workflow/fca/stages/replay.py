"""In: a checkpoint, its evaluation recording, an intervention. Out: the losses under replay.

Writes replay.zarr (nll [repeat, input, target] in nats; kl, total_variation and top1_agreement
[repeat, compared input]) and proofs.json; where the intervention
is not defined for this model, proofs.json alone, with the reason under "undefined".
"""

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
import xarray as xr
from numpy.typing import NDArray

from fca.arithmetic.interventions import draw, is_random
from fca.arithmetic.multiset import fingerprint
from fca.arithmetic.profiles import ORACLES, PROFILES, oracle, profile
from fca.artifacts.parameters import Device, Read
from fca.artifacts.recording import array, labels_of, open_recording, reader
from fca.artifacts.store import processor
from fca.errors import FcaError, ProofError, Undefined
from fca.networks.checkpoint import load_checkpoint
from fca.networks.divergence import MEASURES, divergences
from fca.networks.passes import batches
from fca.networks.passes import replay as replay_batches
from fca.networks.playback import stays_live
from fca.networks.sites import Form
from fca.progress import progress

Source = Callable[[slice], NDArray]


def replay(
    into: Path,
    *,
    model: Read,
    evaluation: Read,
    profiles: Read,
    intervention: str,
    repeats: int,
    seed: int,
    compared: int = 0,
    device: Device = "cpu",
) -> None:
    """Run the frozen model, its controllers disabled, on kept or transformed coefficients.

    compared: on how many inputs whole predictions are compared with the live ones, in passes of
    their own. Batches, precision and threads are the recording's, so that `correct` can be exact. Raises
    ProofError where a controller ran, `correct` differs from live in any bit of its logits or
    losses, or a reassignment changed a coefficient's multiset.
    """
    recording = open_recording(evaluation / "recording.zarr")
    facts = recording.attrs
    torch.set_num_threads(facts["threads"])
    network, sites = load_checkpoint(model, device, facts["precision"])
    forms = [[Form(f["token"], tuple(f["shape"]), f["dtype"]) for f in calls] for calls in facts["forms"]]
    read = reader(evaluation / "recording.zarr")
    tokens = recording["tokens"].values
    batch_size = facts["batch_size"]
    draws = repeats if is_random(intervention) else 1
    proofs: dict = {
        "intervention": intervention,
        "controller_runs": 0,
        "still_running": stays_live(sites),
        "identity": None,
        "multisets_kept": None,
    }
    static, assignments = None, []
    try:
        if is_static(intervention):
            static = static_source(intervention, profiles, read, recording["layer"].values)
        else:
            assignments = [draw(intervention, labels_of(recording), seed + r) for r in range(draws)]
    except Undefined as reason:
        write_proofs(into, proofs | {"undefined": str(reason)})
        return
    count = min(compared, len(tokens))
    apart = {name: np.empty((draws, count)) for name in MEASURES}
    losses = np.empty((draws, *recording["nll"].shape), dtype=np.float32)
    for repeat in range(draws):
        if static is not None:
            source = static
        else:
            assignment = assignments[repeat]
            order = assignment.coefficients

            def source(inputs: slice, gather=assignment.gather) -> NDArray:
                return gather(read, np.arange(inputs.start, inputs.stop))

            check_multisets(intervention, source, read, batches(len(tokens), batch_size), order)
            proofs["multisets_kept"] = True
        passes = replay_batches(network, sites, forms, tokens, source, batch_size)
        label = f"replay {intervention}" + (f" {repeat + 1} of {draws}" if draws > 1 else "")
        digests, runs = [], 0
        for batch in progress(passes, label, len(batches(len(tokens), batch_size))):
            losses[repeat, batch.inputs] = batch.nll
            digests.append(batch.logits_sha256)
            runs = batch.controller_runs
        proofs["controller_runs"] += runs
        if intervention == "correct":
            check_identity(recording, losses[repeat], digests)
            proofs["identity"] = True
        measured = divergences(network, sites, forms, tokens, source, batch_size, count)
        for name, values in measured.items():
            apart[name][repeat] = values
    dataset = xr.Dataset(
        {
            "nll": (("repeat", "input", "target"), losses),
            **{name: (("repeat", "compared"), values) for name, values in apart.items()},
        },
        coords={"document": recording["document"].load(), "target": recording["target"]},
        attrs={"intervention": intervention, "seeds": [seed + r for r in range(draws)]},
    )
    dataset.to_zarr(into / "replay.zarr", zarr_format=3, consolidated=False)
    write_proofs(into, proofs)


def is_static(intervention: str) -> bool:
    return intervention in PROFILES or intervention in ORACLES


def write_proofs(into: Path, proofs: dict) -> None:
    (into / "proofs.json").write_text(json.dumps(proofs, indent=1) + "\n")


def static_source(intervention: str, profiles: Path, read, layers: NDArray) -> Source:
    """Coefficients of a static profile or of an oracle, batch by batch."""
    if intervention in ORACLES:
        oracle(intervention, read(np.arange(1)), layers)  # raises Undefined now, not within a pass
        return lambda batch: oracle(intervention, read(np.arange(batch.start, batch.stop)), layers)
    mean = np.asarray(array(profiles / "profiles.zarr", "mean")[...])
    expected = read(np.arange(1)).shape[1:]
    if mean.shape != expected:
        raise FcaError(f"the profile is {mean.shape} [token, coefficient], the recording {expected}")
    values = profile(intervention, mean, layers)
    return lambda batch: np.broadcast_to(values, (batch.stop - batch.start, *values.shape))


def check_identity(recording: xr.Dataset, nll: NDArray, digests: list[str]) -> None:
    """`correct` must equal live bit for bit: the logits of every batch and every loss."""
    recorded = recording.attrs["logits_sha256"]
    wrong = [i for i, (a, b) in enumerate(zip(recorded, digests, strict=True)) if a != b]
    if not wrong and np.array_equal(recording["nll"].values, nll):
        return
    here, there = processor(), recording.attrs["processor"]
    elsewhere = (
        f"; recorded on {there}, replayed on {here}: record and replay on the same kind of machine"
        if here != there
        else ""
    )
    raise ProofError(
        f"identity: replaying the untouched coefficients differs from the live run in "
        f"{len(wrong)} of {len(recorded)} batches, the first is batch {(wrong or [0])[0]}{elsewhere}"
    )


def check_multisets(intervention: str, source: Source, read, slices: list[slice], order) -> None:
    """A reassignment must hold the same values as the cache, equally often, per coefficient."""
    before = sum(fingerprint(read(np.arange(b.start, b.stop))) for b in slices)
    after = sum(fingerprint(source(b)) for b in slices)
    expected = before if order is None else np.asarray(before)[order]
    if not np.array_equal(after, expected):
        wrong = int(np.flatnonzero(after != expected)[0])
        raise ProofError(f"multisets: {intervention} changed the values of coefficient {wrong}")
