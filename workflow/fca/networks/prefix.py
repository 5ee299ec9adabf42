"""In: a replay, and variants of it that change some sites. Out: the same, without common parts anew.

The first replay is remembered block by block. A variant takes over every block that had finished
before its first changed site was called, and every part of a block that is given the very same
tensors again and holds no changed site. What is taken over is what would be computed, so results
are equal bit for bit to those of a replay from the start.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from torch import Tensor, nn

from fca.errors import FcaError
from fca.networks.playback import Playback
from fca.networks.sites import submodule


@dataclass(frozen=True)
class Call:
    """One call of a module in the first replay.

    given: the objects it was called with. started, finished: its place among all calls. sites:
    those called inside. versions: how often each tensor of the output had been edited in place.
    """

    given: tuple
    output: Any
    started: int
    finished: int
    sites: tuple[int, ...]
    versions: tuple[int, ...]


class Memory:
    """Remembers one replay's blocks and gives them back in variants of it, while the context is open.

    blocks: paths of modules that follow each other, none inside another. Within `remember()` a
    pass is stored; within `reuse(changed)` a pass takes over what the changed sites cannot reach.
    """

    def __init__(self, model: nn.Module, playback: Playback, blocks: Sequence[str]):
        self.playback = playback
        sites = {id(m): i for i, m in enumerate(playback.modules)}
        self.blocks = [(path, submodule(model, path)) for path in blocks]
        self.blocks = [(path, m) for path, m in self.blocks if id(m) not in sites]
        self.parts = [
            (f"{path}.{name}", child)
            for path, block in self.blocks
            for name, child in block.named_children()
            if id(child) not in sites
        ]
        #: module -> the sites inside it
        self.inside = {
            id(m): frozenset(sites[id(below)] for below in m.modules() if id(below) in sites)
            for _, m in (*self.blocks, *self.parts)
        }
        self.mode = "off"
        self.replaced: list[tuple[nn.Module, Callable | None]] = []
        self.handles: list = []
        self._forget()

    def __enter__(self) -> "Memory":
        try:
            for index, module in enumerate(self.playback.modules):
                self.handles.append(module.register_forward_pre_hook(self._site(index)))
            for path, module in self.parts:
                self._replace(module, self._part(path, module, module.forward))
            for path, module in self.blocks:
                self._replace(module, self._block(path, module, module.forward))
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *exception) -> None:
        for handle in self.handles:
            handle.remove()
        for module, forward in reversed(self.replaced):
            if forward is None:
                del module.forward
            else:
                module.forward = forward
        self.handles.clear()
        self.replaced.clear()
        self._forget()

    def _replace(self, module: nn.Module, forward: Callable) -> None:
        self.replaced.append((module, module.__dict__.get("forward")))
        module.forward = forward

    def _forget(self) -> None:
        self.calls: dict[int, list[Call]] = {}
        self.tensors: set[int] = set()  # ids of what is stored, so alive
        self.site_calls: list[tuple[int, int]] = []  # (when, site), in order
        self.clock = 0

    @contextmanager
    def remember(self) -> Iterator[None]:
        """Store the pass made inside."""
        self._forget()
        with self._as("remember"):
            yield

    @contextmanager
    def reuse(self, changed: Iterable[int]) -> Iterator[None]:
        """Make the pass inside from the stored one; changed: indices of the sites that differ."""
        self.changed = frozenset(changed)
        reached = [when for when, site in self.site_calls if site in self.changed]
        self.until = min(reached, default=self.clock + 1)
        self.seen: dict[int, int] = {}
        with self._as("reuse"):
            yield

    @contextmanager
    def _as(self, mode: str) -> Iterator[None]:
        self.mode = mode
        try:
            yield
        finally:
            self.mode = "off"

    def _site(self, index: int) -> Callable:
        def called(*_) -> None:
            if self.mode == "remember":
                self.clock += 1
                self.site_calls.append((self.clock, index))

        return called

    def _block(self, path: str, module: nn.Module, original: Callable) -> Callable:
        def forward(*args, **kwargs):
            if self.mode == "remember":
                return self._store(module, original, args, kwargs, always=True)
            if self.mode == "reuse":
                place = self.seen.get(id(module), 0)
                self.seen[id(module)] = place + 1
                call = self.calls[id(module)][place]
                if call.finished < self.until:
                    return self._take(path, call)
            return original(*args, **kwargs)

        return forward

    def _part(self, path: str, module: nn.Module, original: Callable) -> Callable:
        def forward(*args, **kwargs):
            if self.mode == "remember":
                return self._store(module, original, args, kwargs, always=False)
            if self.mode == "reuse" and not (self.inside[id(module)] & self.changed):
                given = objects(args, kwargs)
                for call in self.calls.get(id(module), ()):
                    if len(given) == len(call.given) and all(a is b for a, b in zip(given, call.given)):
                        return self._take(path, call)
            return original(*args, **kwargs)

        return forward

    def _store(self, module: nn.Module, original: Callable, args, kwargs, always: bool) -> Any:
        """Call and remember; parts only where all they are given is remembered too, since only
        then can a variant give them the very same tensors.
        """
        self.clock += 1
        started = self.clock
        output = original(*args, **kwargs)
        self.clock += 1
        given = objects(args, kwargs)
        if always or all(id(x) in self.tensors for x in given if isinstance(x, Tensor)):
            sites = tuple(site for when, site in self.site_calls if started < when)
            found = tensors(output)
            versions = tuple(t._version for t in found)
            self.calls.setdefault(id(module), []).append(
                Call(given, output, started, self.clock, sites, versions)
            )
            self.tensors |= {id(t) for t in found}
        return output

    def _take(self, path: str, call: Call) -> Any:
        if tuple(t._version for t in tensors(call.output)) != call.versions:
            raise FcaError(
                f"the output of {path!r} is edited in place later in the pass, so a layer map cannot "
                "reuse it; leave `layers.interventions` empty for this model"
            )
        for site in call.sites:
            self.playback.queues[site].pop(0)
        return call.output


def objects(args: tuple, kwargs: dict) -> tuple:
    """Everything a call was given, in a fixed order."""
    return (*args, *(x for name in sorted(kwargs) for x in (name, kwargs[name])))


def tensors(output: Any) -> list[Tensor]:
    """All tensors of a module's output, whatever holds them."""
    if isinstance(output, Tensor):
        return [output]
    if isinstance(output, dict):
        output = tuple(output.values())
    return [t for part in output for t in tensors(part)] if isinstance(output, tuple | list) else []
