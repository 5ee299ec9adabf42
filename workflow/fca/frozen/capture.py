"""In: a model, its sites, a forward pass. Out: the coefficients that the controllers emitted."""

from collections.abc import Callable, Sequence
from contextlib import ExitStack

import torch
from torch import Tensor, nn

from fca.controllers.forms import Form, to_channels
from fca.controllers.paths import submodule
from fca.controllers.sites import Site
from fca.errors import FcaError
from fca.frozen.swap import swapped


class Capture:
    """Records every call of every site while the context is open; the model runs unchanged.

    What is recorded is cloned at once, so that later in-place changes by the network cannot
    reach it.
    """

    def __init__(self, model: nn.Module, sites: Sequence[Site]):
        self.sites = list(sites)
        self.modules = [submodule(model, site.path) for site in self.sites]
        self.calls: list[list[Tensor]] = [[] for _ in self.sites]
        self.open = ExitStack()

    def __enter__(self) -> "Capture":
        self.open.enter_context(
            swapped(
                (module, site.method, self._recorder(site, module, calls))
                for site, module, calls in zip(self.sites, self.modules, self.calls)
            )
        )
        return self

    def __exit__(self, *exception) -> None:
        self.open.close()

    @staticmethod
    def _recorder(site: Site, module: nn.Module, calls: list[Tensor]) -> Callable[[Callable], Callable]:
        def wrap(original: Callable) -> Callable:
            def recorded(*args, **kwargs):
                output = original(*args, **kwargs)
                calls.append(site.coefficient(module, output, args, kwargs).detach().clone())
                return output

            return recorded

        return wrap

    def take(self, batch: int, token: int) -> tuple[Tensor, list[list[Form]]]:
        """What the last pass emitted: float32 [batch, token, coefficient] and each call's form.

        Raises FcaError for a site that was never called or whose output holds NaN or infinity.
        """
        parts, forms = [], []
        for site, calls in zip(self.sites, self.calls):
            if not calls:
                raise FcaError(
                    f"site {site.path!r} was never called in the forward pass; its weights may be "
                    "used directly, and a replacement there sees nothing"
                )
            taken = [to_channels(call, batch, token, site.path) for call in calls]
            forms.append([form for _, form in taken])
            for coefficients, _ in taken:
                if not torch.isfinite(coefficients).all():
                    raise FcaError(f"site {site.path!r} emitted NaN or infinite coefficients")
                parts.append(coefficients)
            calls.clear()
        if len({part.shape[1] for part in parts}) > 1:
            raise FcaError("sites with and without a token axis cannot be audited together")
        # a model can be spread over several devices
        return torch.cat([part.to(parts[0].device) for part in parts], dim=-1), forms
