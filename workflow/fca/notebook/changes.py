"""In: a record. Out: coefficients to replay: reassigned, or a static profile."""

import numpy as np
import xarray as xr

from fca.interventions.assignments import Labels
from fca.interventions.draws import draw
from fca.interventions.profiles import ORACLES, profile
from fca.interventions.profiles import oracle as per_input_means


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


def static(calibration: xr.Dataset, name: str, oracle: bool = False) -> xr.DataArray:
    """A static profile [token, coefficient] from a calibration record, or an oracle of a record.

    name: global_mean, layer_mean, token_mean, layer_token_mean; oracles (which need the evaluation
    record itself): input_mean, input_layer_mean, input_token_mean; with layer_only for layer, the
    mean over a layer's channels too. oracle: the profile may be replayed on the very inputs that it
    is estimated on; its retention then is an upper bound, and must be called so.
    """
    if name in ORACLES:
        values = per_input_means(name, calibration["coefficients"].values, calibration["layer"])
        return like(calibration, values, name)
    mean = calibration["coefficients"].mean("input", dtype="float64").values
    found = like(calibration, profile(name, mean, calibration["layer"]), name)
    del found.attrs["batch_size"]  # of the calibration's passes, not of those that it is compared with
    if not oracle:
        named = calibration.attrs["documents_named"]
        found.attrs["estimated_on"] = {
            "content": calibration["content"].values.tolist(),
            "document": calibration["document"].values.tolist() if named else [],
        }
    return found


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
