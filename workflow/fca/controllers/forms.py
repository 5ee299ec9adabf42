"""In: what sites emitted. Out: an array [batch, token, channel] with labels, and back.

A form says what a call's output looked like, so that playback can give it back as it was.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from fca.controllers.sites import Site
from fca.errors import FcaError

HELD = (torch.float32, torch.bfloat16, torch.float16, torch.bool, torch.uint8, torch.int8, torch.int16)


@dataclass(frozen=True)
class Form:
    """What one call of a site's output looked like, so that playback can rebuild it.

    token: "axis" for [batch, token, ...], "flat" for [batch * token, ...], "none" for outputs
    without tokens, [batch, ...], which count as one token.
    """

    token: str
    shape: tuple[int, ...]  # what follows the batch and token axes
    dtype: str  # of the network; stored coefficients are float32, which holds bfloat16 exactly

    @property
    def channels(self) -> int:
        return int(np.prod(self.shape, dtype=int))


def to_channels(output: Tensor, batch: int, token: int, path: str) -> tuple[Tensor, Form]:
    """A module's output as float32 [batch, token, channel], and its form."""
    dtype = str(output.dtype).removeprefix("torch.")
    if output.ndim >= 2 and output.shape[:2] == (batch, token):
        form = Form("axis", tuple(output.shape[2:]), dtype)
    elif output.ndim >= 1 and output.shape[0] == batch * token:
        form = Form("flat", tuple(output.shape[1:]), dtype)
    elif output.ndim >= 1 and output.shape[0] == batch:
        form = Form("none", tuple(output.shape[1:]), dtype)
    else:
        raise FcaError(
            f"site {path!r}: output of shape {tuple(output.shape)} fits neither "
            f"[batch={batch}, token={token}, ...] nor [batch * token, ...] nor [batch, ...]"
        )
    tokens = 1 if form.token == "none" else token
    check_storable(output, path)
    return output.float().reshape(batch, tokens, form.channels), form


def check_storable(output: Tensor, path: str) -> None:
    """Refuse numbers that float32, in which coefficients are kept, does not hold exactly."""
    if output.dtype in HELD:
        return
    if output.is_complex() or not torch.equal(output.float().to(output.dtype), output):
        raise FcaError(
            f"site {path!r} emits {str(output.dtype).removeprefix('torch.')} values that float32 does not "
            "hold exactly, so a replay could not be exact; run the model in float32 or bfloat16"
        )


def continuous(form: Form) -> bool:
    """Whether a site can emit any number, such as a mean, or only whole ones (integers, booleans)."""
    return getattr(torch, form.dtype).is_floating_point


def from_channels(coefficients: Tensor, form: Form) -> Tensor:
    """[batch, token, channel] in the shape and precision of the module's output.

    Contiguous as the module's output was: kernels for strided tensors round differently.
    """
    batch, token = coefficients.shape[:2]
    lead = {"axis": (batch, token), "flat": (batch * token,), "none": (batch,)}[form.token]
    given = coefficients.reshape(*lead, *form.shape)
    shaped = given.to(getattr(torch, form.dtype))
    if not continuous(form) and not torch.equal(shaped.to(given.dtype), given):
        raise FcaError(
            f"the site emits {form.dtype}, whole numbers only, and what is to be played back holds others, "
            "as a mean does; use reassignments"
        )
    return shaped.contiguous()


def forms_from(written: Sequence[Sequence[Mapping[str, Any]]]) -> list[list[Form]]:
    """Every site's forms, as a recording's attributes hold them."""
    return [[Form(f["token"], tuple(f["shape"]), f["dtype"]) for f in calls] for calls in written]


def coordinates(sites: Sequence[Site], forms: Sequence[Sequence[Form]]) -> dict[str, np.ndarray]:
    """Labels of the coefficient axis: site, layer, channel (running number within the layer),
    call where a site is called more than once in a pass, and the sites' own labels.
    """
    columns: dict[str, list] = {"site": [], "layer": [], "channel": [], "call": []}
    own = sorted({name for site in sites for name in site.labels})
    columns |= {name: [] for name in own}
    filled: dict[int, int] = {}
    for site, calls in zip(sites, forms, strict=True):
        for call, form in enumerate(calls):
            n = form.channels
            for name, values in site.labels.items():
                if len(values) != n:
                    raise FcaError(
                        f"site {site.path!r}: label {name!r} names {len(values)} channels, the output has {n}"
                    )
            start = filled.get(site.layer, 0)
            filled[site.layer] = start + n
            columns["site"] += [site.path] * n
            columns["layer"] += [site.layer] * n
            columns["channel"] += range(start, start + n)
            columns["call"] += [call] * n
            for name in own:
                columns[name] += site.labels.get(name, [""] * n)
    if all(len(calls) == 1 for calls in forms):
        del columns["call"]
    return {name: np.asarray(values) for name, values in columns.items()}
