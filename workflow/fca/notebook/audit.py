"""In: a model, its sites, inputs, coefficients. Out: a record, or a replay, as labelled data sets."""

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
from fca.notebook.apart import check_apart, contents


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
            "content": ("input", contents(ids)),
            **{name: ("coefficient", values) for name, values in labels.items()},
        },
        attrs={
            "batch_size": size,
            "documents_named": documents is not None,
            "forms": [[asdict(form) for form in calls] for calls in found[0].forms],
            "logits_sha256": [b.logits_sha256 for b in found],
        },
    )


def replay(
    model: nn.Module,
    sites: Sequence[Site],
    tokens: Any,
    coefficients: xr.DataArray,
    batch_size: int | None = None,
    documents: Sequence[int] | None = None,
) -> xr.Dataset:
    """Run the model, its controllers disabled, on given coefficients.

    coefficients: what an intervention returns, [input, token, coefficient] or a static
    [token, coefficient]. batch_size: by default that of the record that a reassignment was made
    from; a static profile has none of its own, so give it that of the record it is compared with
    where that was not all inputs at once. documents: as for `capture`. Raises FcaError for a static
    profile that was estimated on any of these inputs or documents.
    Returns nll [input, target] in nats or, for inputs that are no tokens,
    log_probability [input, class]; attributes controller_runs (0 or a
    ProofError), logits_sha256 per batch, and still_running, the sites whose module has to run.
    """
    ids = check_tokens(tokens)
    facts = coefficients.attrs
    if "forms" not in facts:
        raise FcaError("the coefficients lost their attributes; pass what an fca intervention returns")
    check_apart(facts, ids, documents)
    size = batch_size or facts.get("batch_size") or len(ids)
    forms = forms_from(facts["forms"])
    values = np.asarray(coefficients.values, dtype=np.float32)
    if values.ndim == 2:
        values = np.broadcast_to(values, (len(ids), *values.shape))
    if len(values) != len(ids):
        raise FcaError(f"{len(values)} inputs of coefficients for {len(ids)} inputs of tokens")
    with evaluating(model):
        passes = replay_batches(model, sites, forms, ids, lambda inputs: values[inputs], size)
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
