"""In: a model, its sites, a forward pass. Out: the coefficients that the controllers emitted."""

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from fca.errors import FcaError
from fca.networks.sites import Form, Site, submodule, to_channels


class Capture:
    """Records every call of every site while the context is open; the model runs unchanged.

    What is recorded is cloned at once, so that later in-place changes by the network cannot
    reach it.
    """

    def __init__(self, model: nn.Module, sites: Sequence[Site]):
        self.sites = list(sites)
        self.modules = [submodule(model, site.path) for site in self.sites]
        self.calls: list[list[Tensor]] = [[] for _ in self.sites]
        self.handles: list = []

    def __enter__(self) -> "Capture":
        for site, module, calls in zip(self.sites, self.modules, self.calls):

            def hook(_module, _args, output, site=site, calls=calls):
                calls.append(site.coefficient(output).detach().clone())

            self.handles.append(module.register_forward_hook(hook))
        return self

    def __exit__(self, *exception) -> None:
        for handle in self.handles:
            handle.remove()
        self.handles.clear()

    def take(self, batch: int, token: int) -> tuple[Tensor, list[list[Form]]]:
        """What the last pass emitted: float32 [batch, token, coefficient] and each call's form.

        Raises FcaError for a site that was never called or whose output holds NaN or infinity.
        """
        parts, forms = [], []
        for site, calls in zip(self.sites, self.calls):
            if not calls:
                raise FcaError(
                    f"site {site.path!r} was never called in the forward pass; its weights may be "
                    "used directly, and a hook there sees nothing"
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
        return torch.cat(parts, dim=-1), forms
