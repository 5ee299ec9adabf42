"""In: a module tree. Out: sites, the places where a controller's output enters the network.

A site knows which part of a module's output is the coefficient, as an array
[batch, token, channel], and how to give it back to the network in the shape it had.
"""

import inspect
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from torch import Tensor, nn

from fca.controllers.paths import layers_of, matching
from fca.errors import FcaError


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


def find_sites(model: nn.Module, pattern: str) -> list[Site]:
    """Sites at the modules whose dotted path matches a pattern such as `blocks.*.gate`.

    The module's whole output is taken as the coefficient; layers as in `layers_of`. Raises
    FcaError where nothing matches, naming what exists.
    """
    paths = matching(model, pattern)
    return [Output(path, layer) for path, layer in zip(paths, layers_of(paths))]
