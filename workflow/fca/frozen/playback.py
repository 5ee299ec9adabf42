"""In: a model, its sites, recorded coefficients. Out: a model that runs on them alone.

The controllers' `forward` is replaced while the context is open and put back when it closes.
"""

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from functools import wraps

from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from fca.controllers.forms import Form, from_channels
from fca.controllers.paths import submodule
from fca.controllers.sites import Site
from fca.errors import ProofError
from fca.frozen.swap import poisoned, swapped
from fca.machine.device import beside


class ParameterWatch(TorchFunctionMode):
    """Counts the operations in which any of the given parameters takes part.

    Hooks see a module that is called; this also sees weights that are used behind its back.
    """

    def __init__(self, parameters: Sequence[nn.Parameter]):
        super().__init__()
        self.watched = {id(parameter) for parameter in parameters}
        self.operations = 0

    def __torch_function__(self, function, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        if any(id(value) in self.watched for value in (*args, *kwargs.values())):
            self.operations += 1
        return function(*args, **kwargs)


class Playback:
    """Plays coefficients back at the sites while the context is open.

    Call `load` with one batch's coefficients before each forward pass and `finish` after it.
    `controller_runs` counts calls of the controllers, of modules inside them, and operations on
    their parameters; it must stay 0 where a controller is a module of its own. What no count can see
    (weights inside a list or an einsum, buffers) shows in the result: while the context is open, the
    controllers' parameters and buffers are NaN.
    """

    def __init__(
        self,
        model: nn.Module,
        sites: Sequence[Site],
        forms: Sequence[Sequence[Form]],
        watched: bool = True,
    ):
        """watched=False leaves out the look at every operation, for timing only."""
        self.sites = list(sites)
        self.forms = [list(calls) for calls in forms]
        self.modules = [submodule(model, site.path) for site in self.sites]
        self.queues: list[list[Tensor]] = [[] for _ in self.sites]
        self.controller_runs = 0
        disabled = [m for s, m in zip(self.sites, self.modules) if not s.runs_in_playback]
        inside = {id(module) for top in disabled for module in top.modules()}
        elsewhere = {
            id(tensor)
            for module in model.modules()
            if id(module) not in inside
            for tensor in (*module.parameters(recurse=False), *module.buffers(recurse=False))
        }
        self.descendants = [m for top in disabled for m in top.modules() if m is not top]
        self.parameters = [p for top in disabled for p in top.parameters() if id(p) not in elsewhere]
        buffers = [b for top in disabled for b in top.buffers() if id(b) not in elsewhere]
        self.disabled = list({id(tensor): tensor for tensor in (*self.parameters, *buffers)}.values())
        self.watch = ParameterWatch(self.parameters) if watched else None
        self.open = ExitStack()

    def __enter__(self) -> "Playback":
        try:
            for module in self.descendants:
                handle = module.register_forward_pre_hook(self._count)
                self.open.callback(handle.remove)
            self.open.enter_context(
                swapped(
                    (module, site.method, self._player(site, module, queue))
                    for site, module, queue in zip(self.sites, self.modules, self.queues)
                )
            )
            self.open.enter_context(poisoned(self.disabled))
            if self.watch:
                self.open.enter_context(self.watch)
        except BaseException:
            self.open.close()
            raise
        return self

    def __exit__(self, *exception) -> None:
        self.open.close()

    def _count(self, *_) -> None:
        self.controller_runs += 1

    def _player(self, site: Site, module: nn.Module, queue: list[Tensor]) -> Callable[[Callable], Callable]:
        def wrap(original: Callable) -> Callable:
            @wraps(original)  # sites look at its signature
            def counted(*args, **kwargs):
                if not site.runs_in_playback:
                    self.controller_runs += 1
                return original(*args, **kwargs)

            def played(*args, **kwargs):
                if not queue:
                    raise ProofError(
                        f"site {site.path!r} was called more often in the replay than when recorded"
                    )
                value = beside(queue.pop(0), args, kwargs)  # a model can be spread over several devices
                return site.playback(module, counted, value, args, kwargs)

            return played

        return wrap

    def load(self, coefficients: Tensor) -> None:
        """Queue one batch's coefficients, [batch, token, coefficient] on the model's device."""
        start = 0
        for queue, calls in zip(self.queues, self.forms):
            queue.clear()
            for form in calls:
                part = coefficients[:, :, start : start + form.channels]
                queue.append(from_channels(part, form))
                start += form.channels
        if start != coefficients.shape[-1]:
            raise ProofError(
                f"{coefficients.shape[-1]} coefficients per token to play back, the sites take {start}"
            )

    def finish(self) -> None:
        """Check after a pass that every recorded call was played and no controller ran."""
        if self.watch:
            self.controller_runs += self.watch.operations
            self.watch.operations = 0
        for site, queue in zip(self.sites, self.queues):
            if queue:
                raise ProofError(f"site {site.path!r}: {len(queue)} recorded calls were not played back")
        if self.controller_runs:
            raise ProofError(
                f"a controller ran during playback ({self.controller_runs} calls or operations); "
                f"sites: {', '.join(site.path for site in self.sites)}"
            )


def stays_live(sites: Sequence[Site]) -> list[str]:
    """Paths of the sites whose module has to run in playback, for the report."""
    return [site.path for site in sites if site.runs_in_playback]
