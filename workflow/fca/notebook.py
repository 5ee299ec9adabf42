"""In: any torch module that maps token ids to logits. Out: an audit in a notebook, no workflow.

sites = fca.find_sites(model, "blocks.*.gate")
record = fca.capture(model, sites, tokens)
replay = fca.replay(model, sites, tokens, fca.cross_input(record, seed=0))
float(replay.nll.mean() - record.nll.mean())  # the penalty, nats per token
"""

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import numpy as np
import xarray as xr
from torch import nn

from fca.controllers.forms import coordinates, forms_from
from fca.controllers.sites import Site
from fca.errors import FcaError
from fca.frozen.passes import record
from fca.frozen.passes import replay as replay_batches
from fca.frozen.playback import stays_live
from fca.frozen.prepare import check_tokens
from fca.interventions.assignments import Labels
from fca.interventions.draws import draw
from fca.interventions.profiles import ORACLES, oracle, profile


def capture(
    model: nn.Module,
    sites: Sequence[Site],
    tokens: Any,
    batch_size: int | None = None,
    documents: Sequence[int] | None = None,
) -> xr.Dataset:
    """Run the unperturbed model and record what its controllers emit.

    tokens: integers [input, token], or floating-point inputs such as images. batch_size: inputs
    per pass (all at once by default); replay uses the same, since batch composition changes
    results in the last digits. documents [input]: which document each input comes from (by
    default each its own); donors are never of the same.
    Returns coefficients [input, token, coefficient] and nll [input, target] in nats; for inputs
    that are no tokens, coefficients of one token and log_probability [input, class].
    """
    if not sites:
        raise FcaError("no sites to capture; see fca.find_sites")
    ids = check_tokens(tokens)
    size = batch_size or len(ids)
    owners = np.arange(len(ids)) if documents is None else np.asarray(documents)
    if owners.shape != (len(ids),):
        raise FcaError(f"documents: {len(ids)} inputs need {len(ids)} ids, found shape {owners.shape}")
    with evaluating(model):
        found = list(record(model, sites, ids, size))
    coefficients = np.concatenate([b.coefficients for b in found if b.coefficients is not None])
    labels = coordinates(sites, found[0].forms)
    return xr.Dataset(
        {
            "coefficients": (("input", "token", "coefficient"), coefficients),
            **judged(ids, np.concatenate([b.nll for b in found])),
        },
        coords={
            "document": ("input", owners),
            **{name: ("coefficient", values) for name, values in labels.items()},
        },
        attrs={
            "batch_size": size,
            "forms": [[asdict(form) for form in calls] for calls in found[0].forms],
            "logits_sha256": [b.logits_sha256 for b in found],
        },
    )


def replay(model: nn.Module, sites: Sequence[Site], tokens: Any, coefficients: xr.DataArray) -> xr.Dataset:
    """Run the model, its controllers disabled, on given coefficients.

    coefficients: what an intervention returns, [input, token, coefficient] or a static
    [token, coefficient]. Returns nll [input, target] in nats or, for inputs that are no tokens,
    log_probability [input, class]; attributes controller_runs (0 or a
    ProofError), logits_sha256 per batch, and still_running, the sites whose module has to run.
    """
    ids = check_tokens(tokens)
    facts = coefficients.attrs
    if "forms" not in facts:
        raise FcaError("the coefficients lost their attributes; pass what an fca intervention returns")
    forms = forms_from(facts["forms"])
    values = np.asarray(coefficients.values, dtype=np.float32)
    if values.ndim == 2:
        values = np.broadcast_to(values, (len(ids), *values.shape))
    if len(values) != len(ids):
        raise FcaError(f"{len(values)} inputs of coefficients for {len(ids)} inputs of tokens")
    with evaluating(model):
        passes = replay_batches(model, sites, forms, ids, lambda inputs: values[inputs], facts["batch_size"])
        found = list(passes)
    return xr.Dataset(
        judged(ids, np.concatenate([b.nll for b in found])),
        attrs={
            "controller_runs": found[-1].controller_runs,
            "logits_sha256": [b.logits_sha256 for b in found],
            "still_running": stays_live(sites),
        },
    )


def judged(inputs: np.ndarray, values: np.ndarray) -> dict[str, Any]:
    """What passes are judged by, as variables: see `fca.frozen.loss.measured`."""
    if not np.issubdtype(inputs.dtype, np.integer):
        return {"log_probability": (("input", "class"), values)}
    return {
        "nll": (("input", "target"), values),
        "target": np.arange(1, inputs.shape[1]),
    }


def divergence(live: xr.Dataset, replayed: xr.Dataset) -> xr.DataArray:
    """KL(live || replayed) of the output distributions in nats, [input], for models of images."""
    p, q = live["log_probability"], replayed["log_probability"]
    return (xr.apply_ufunc(np.exp, p) * (p - q)).sum("class")


class evaluating:
    """Puts a model into evaluation mode and back: dropout would make a replay differ."""

    def __init__(self, model: nn.Module):
        self.model, self.modes = model, {m: m.training for m in model.modules()}

    def __enter__(self) -> None:
        self.model.eval()

    def __exit__(self, *exception) -> None:
        for module, training in self.modes.items():
            module.training = training


def reassign(record: xr.Dataset, intervention: str, seed: int = 0) -> xr.DataArray:
    """The recorded coefficients, reassigned: any name or names joined by +, drawn from a seed."""
    values = record["coefficients"].values
    labels = Labels(record["document"].values, values.shape[1], record["layer"].values)
    drawn = draw(intervention, labels, seed)
    return like(record, drawn.gather(lambda inputs: values[inputs], np.arange(len(values))), intervention)


def correct(record: xr.Dataset) -> xr.DataArray:
    """The recorded coefficients as they are."""
    return reassign(record, "correct")


def cross_input(record: xr.Dataset, seed: int = 0) -> xr.DataArray:
    """Every input gets the coefficients of an input from another document, token by token."""
    return reassign(record, "cross_input", seed)


def token_shuffle(record: xr.Dataset, seed: int = 0) -> xr.DataArray:
    """One random permutation of the tokens per input, the same for all coefficients."""
    return reassign(record, "token_shuffle", seed)


def layer_shuffle(record: xr.Dataset, seed: int = 0) -> xr.DataArray:
    """One random derangement of the layers, where all have the same channels."""
    return reassign(record, "layer_shuffle", seed)


def static(calibration: xr.Dataset, name: str) -> xr.DataArray:
    """A static profile [token, coefficient] from a calibration record, or an oracle of a record.

    name: global_mean, layer_mean, token_mean, layer_token_mean; oracles (which need the evaluation
    record itself): input_mean, input_layer_mean, input_token_mean; with layer_only for layer, the
    mean over a layer's channels too.
    """
    if name in ORACLES:
        return like(calibration, oracle(name, calibration["coefficients"].values, calibration["layer"]), name)
    mean = calibration["coefficients"].mean("input", dtype="float64").values
    return like(calibration, profile(name, mean, calibration["layer"]), name)


def global_mean(calibration: xr.Dataset) -> xr.DataArray:
    """One number for everything."""
    return static(calibration, "global_mean")


def layer_mean(calibration: xr.Dataset) -> xr.DataArray:
    """The static layerwise profile: the mean of each coefficient over inputs and tokens."""
    return static(calibration, "layer_mean")


def like(record: xr.Dataset, values: np.ndarray, intervention: str) -> xr.DataArray:
    """Values with the record's labels, and with what replay needs to know."""
    dims = ("input", "token", "coefficient")[-values.ndim :]
    labels = {k: v for k, v in record.coords.items() if v.dims == ("coefficient",)}
    facts = {k: record.attrs[k] for k in ("forms", "batch_size")}
    return xr.DataArray(values, dims=dims, coords=labels, attrs={**facts, "intervention": intervention})
