"""In: a module tree. Out: sites, the places where a controller's output enters the network.

A site knows which part of a module's output is the coefficient, as an array
[batch, token, channel], and how to give it back to the network in the shape it had.
"""

import inspect
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from fca.errors import FcaError
from fca.networks.paths import layers_of, matching


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


@dataclass(frozen=True)
class Site(ABC):
    """One place where a controller's output enters the network.

    path: dotted path of the controller's module. layer: 0-based depth. labels: names of the
    channels, {coordinate: one value per channel}, beside their running number. method: what is
    replaced on the module instance.
    """

    path: str
    layer: int
    labels: Mapping[str, Sequence] = field(default_factory=dict)
    method = "forward"

    #: True where the module has to run even in playback, since only part of it is replaced
    runs_in_playback = False

    @abstractmethod
    def coefficient(self, module: nn.Module, output: Any, args: tuple, kwargs: dict) -> Tensor:
        """The part of a call that is coefficient."""

    @abstractmethod
    def playback(
        self, module: nn.Module, original: Callable, coefficient: Tensor, args: tuple, kwargs: dict
    ) -> Any:
        """What the call returns instead when `coefficient` is played back."""


@dataclass(frozen=True)
class Output(Site):
    """The module's whole output is the coefficient."""

    def coefficient(self, module, output, args, kwargs) -> Tensor:
        if not isinstance(output, Tensor):
            raise FcaError(
                f"site {self.path!r}: the module returns a {type(output).__name__}, not a tensor; "
                "choose a kind of site that says which part of it is the coefficient"
            )
        return output

    def playback(self, module, original, coefficient, args, kwargs):
        return coefficient


@dataclass(frozen=True)
class Slice(Site):
    """Some positions of the output's last axis are the coefficient; the rest is content.

    The module runs in playback too, for the content; its coefficients are overwritten.
    """

    positions: tuple[int, ...] = ()
    runs_in_playback = True

    def coefficient(self, module, output, args, kwargs) -> Tensor:
        return output[..., list(self.positions)]

    def playback(self, module, original, coefficient, args, kwargs):
        output = original(*args, **kwargs).clone()
        output[..., list(self.positions)] = coefficient
        return output


@dataclass(frozen=True)
class Inside(Site):
    """The module consumes its coefficients itself; `adapter` takes its forward apart.

    adapter.coefficients(module, output, *args) gives them; adapter.forward(module, coefficients,
    *args) must return exactly what the module does, which the identity proof checks.
    """

    adapter: Any = None

    def coefficient(self, module, output, args, kwargs) -> Tensor:
        return self.adapter.coefficients(module, output, *args, **kwargs)

    def playback(self, module, original, coefficient, args, kwargs):
        return self.adapter.forward(module, coefficient, *args, **kwargs)


@dataclass(frozen=True)
class Function(Site):
    """A function kept on the module is called with the coefficient as one of its arguments.

    The function is content and runs in playback; what computed the argument runs too, in vain.
    """

    method: str = "forward"
    argument: str = ""
    runs_in_playback = True

    def _bound(self, function: Callable, args: tuple, kwargs: dict) -> inspect.BoundArguments:
        bound = inspect.signature(function).bind(*args, **kwargs)
        if self.argument not in bound.arguments:
            found = ", ".join(bound.arguments)
            raise FcaError(
                f"site {self.path!r}: {self.method} has no argument {self.argument!r}; it has {found}"
            )
        return bound

    def coefficient(self, module, output, args, kwargs) -> Tensor:
        return self._bound(getattr(module, self.method), args, kwargs).arguments[self.argument]

    def playback(self, module, original, coefficient, args, kwargs):
        bound = self._bound(original, args, kwargs)
        bound.arguments[self.argument] = coefficient
        return original(*bound.args, **bound.kwargs)


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
    return output.float().reshape(batch, tokens, form.channels), form


def from_channels(coefficients: Tensor, form: Form) -> Tensor:
    """[batch, token, channel] in the shape and precision of the module's output.

    Contiguous as the module's output was: kernels for strided tensors round differently.
    """
    batch, token = coefficients.shape[:2]
    lead = {"axis": (batch, token), "flat": (batch * token,), "none": (batch,)}[form.token]
    shaped = coefficients.reshape(*lead, *form.shape).to(getattr(torch, form.dtype))
    return shaped.contiguous()


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


def find_sites(model: nn.Module, pattern: str) -> list[Site]:
    """Sites at the modules whose dotted path matches a pattern such as `blocks.*.gate`.

    The module's whole output is taken as the coefficient; layers as in `layers_of`. Raises
    FcaError where nothing matches, naming what exists.
    """
    paths = matching(model, pattern)
    return [Output(path, layer) for path, layer in zip(paths, layers_of(paths))]
