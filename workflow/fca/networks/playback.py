"""In: a model, its sites, recorded coefficients. Out: a model that runs on them alone.

The controllers' `forward` is replaced on the module instance, never the module itself, since
blocks read their controllers' attributes. Everything is put back when the context closes.
"""

from collections.abc import Callable, Sequence

from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from fca.errors import ProofError
from fca.networks.sites import Form, Site, from_channels, submodule


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
    their parameters; it must stay 0 where a controller is a module of its own.
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
            id(parameter)
            for module in model.modules()
            if id(module) not in inside
            for parameter in module.parameters(recurse=False)
        }
        self.descendants = [m for top in disabled for m in top.modules() if m is not top]
        self.parameters = [p for top in disabled for p in top.parameters() if id(p) not in elsewhere]
        self.watch = ParameterWatch(self.parameters) if watched else None
        self.handles: list = []
        self.replaced: list[tuple[nn.Module, Callable | None]] = []

    def __enter__(self) -> "Playback":
        try:
            for module in self.descendants:
                self.handles.append(module.register_forward_pre_hook(self._count))
            for index, module in enumerate(self.modules):
                # accelerate and others also keep a forward on the instance: put theirs back
                self.replaced.append((module, module.__dict__.get("forward")))
                module.forward = self._player(index, module.forward)
            if self.watch:
                self.watch.__enter__()
        except BaseException:
            self._restore()
            raise
        return self

    def __exit__(self, *exception) -> None:
        if self.watch:
            self.watch.__exit__(*exception)
        self._restore()

    def _restore(self) -> None:
        for handle in self.handles:
            handle.remove()
        for module, forward in self.replaced:
            if forward is None:
                del module.forward
            else:
                module.forward = forward
        self.handles.clear()
        self.replaced.clear()

    def _count(self, *_) -> None:
        self.controller_runs += 1

    def _player(self, index: int, original):
        site, module, queue = self.sites[index], self.modules[index], self.queues[index]

        def counted(*args, **kwargs):
            if not site.runs_in_playback:
                self.controller_runs += 1
            return original(*args, **kwargs)

        def forward(*args, **kwargs):
            if not queue:
                raise ProofError(f"site {site.path!r} was called more often in the replay than when recorded")
            return site.playback(module, counted, queue.pop(0), args, kwargs)

        return forward

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
