"""In: what the config says about sites. Out: the sites of a model."""

from collections.abc import Mapping, Sequence
from typing import Any

from torch import nn

from fca.controllers.families import select
from fca.controllers.paths import submodule
from fca.controllers.routing import softened
from fca.controllers.sites import Function, Site, Slice, find_sites
from fca.errors import FcaError


def choose(model: nn.Module, wanted: Mapping[str, Any], own: Sequence[Site] = ()) -> list[Site]:
    """Sites by family or by pattern.

    wanted: {"family": "auto" or a name} or {"pattern": ...} with, for a part of the output,
    "positions" (a list, or a number n for n evenly spaced ones), or "method" and "argument" for
    a function that is kept on the module; "soft": true leaves routing unprojected. own: the
    sites that the kind of model declares itself, which `auto` means where there are any.
    """
    if "pattern" in wanted:
        sites = [by_pattern(model, site, wanted) for site in find_sites(model, wanted["pattern"])]
    elif own and wanted.get("family", "auto") == "auto":
        sites = list(own)
    else:
        sites = select(model, wanted.get("family", "auto"))
        if "positions" in wanted:
            sites = [part(model, site, wanted["positions"]) for site in sites]
    return [softened(site) for site in sites] if wanted.get("soft") else sites


def by_pattern(model: nn.Module, site: Site, wanted: Mapping[str, Any]) -> Site:
    """The kind of site that the config asks for at a module that matched."""
    if "argument" in wanted:
        method = wanted.get("method", "forward")
        return Function(site.path, site.layer, method=method, argument=wanted["argument"])
    return part(model, site, wanted["positions"]) if "positions" in wanted else site


def part(model: nn.Module, site: Site, positions: Sequence[int] | int) -> Site:
    """Some positions of a site's output; a number means that many, evenly spaced."""
    if not isinstance(positions, int):
        return Slice(site.path, site.layer, positions=tuple(positions))
    width = output_width(model, site.path)
    if not 0 < positions <= width:
        raise FcaError(f"sites.positions: {positions} of the {width} positions of {site.path!r}")
    step = width / positions
    return Slice(site.path, site.layer, positions=tuple(int(i * step) for i in range(positions)))


def output_width(model: nn.Module, path: str) -> int:
    """Length of the last axis of a module's output, as far as the model tells without running."""
    own = getattr(submodule(model, path), "out_features", None)
    config = getattr(model, "config", None)
    width = own or getattr(config, "intermediate_size", None)
    if width is None:
        raise FcaError(f"sites.positions: give {path!r} a list of positions; its width is not known")
    return int(width)
