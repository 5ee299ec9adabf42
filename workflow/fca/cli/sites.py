"""In: a model by folder, name or factory. Out: a table of the controllers found in it."""

from pathlib import Path

import torch
from torch import nn

from fca.controllers.families import FAMILIES, known_sites, static_parameters
from fca.controllers.paths import nearest
from fca.controllers.sites import Site
from fca.errors import FcaError
from fca.frozen.passes import record
from fca.frozen.prepare import check_tokens
from fca.models import factory as python
from fca.models import huggingface
from fca.models.checkpoint import load_checkpoint

TRIED_TOKENS = [[1, 2, 3, 4], [4, 3, 2, 1]]  # enough to see the shape of what sites emit


def print_sites(source: str, trust_remote_code: bool) -> None:
    """Print family, path, layer, channels, kind and form of every site, and what is known of it."""
    model, own = load_any(source, trust_remote_code)
    known = {family.name: family.known for family in FAMILIES}
    found = ({"own": own} if own else {}) | known_sites(model)
    for name, sites in found.items():
        print(f"{name}: {len(sites)} sites; {known.get(name, 'declared by the kind of model')}")
        print(f"  {'path':<44} {'layer':>5} {'channels':>8}  {'kind':<12} form")
        for site, (channels, form) in zip(sites, forms(model, sites)):
            print(f"  {site.path:<44} {site.layer:>5} {channels:>8}  {type(site).__name__:<12} {form}")
    static = static_parameters(model)
    if static:
        print(f"static: {', '.join(static[:4])}{', ...' if len(static) > 4 else ''}")
        print("  parameters, the same for every input: nothing to audit")
    if not found:
        print(f"no known controller in {type(model).__name__}; {nearest(model, 'gate')}")


def load_any(source: str, trust_remote_code: bool) -> tuple[nn.Module, list[Site]]:
    """A checkpoint known here, a factory, or a Hugging Face model."""
    if ":" in source:
        return python.load(source, torch.float32, {}).eval(), []
    try:
        return load_checkpoint(source)
    except FcaError:
        if (Path(source) / "config.json").is_file() or not Path(source).exists():
            options = {"trust_remote_code": trust_remote_code}
            return huggingface.load(source, torch.float32, options).eval(), []
        raise


def forms(model: nn.Module, sites: list[Site]) -> list[tuple[int, str]]:
    """Channels and form of every site, seen in one short pass."""
    batch = next(iter(record(model, sites, check_tokens(TRIED_TOKENS), len(TRIED_TOKENS))))
    lead = {"axis": "batch, token", "flat": "batch * token", "none": "batch"}
    return [
        (
            sum(form.channels for form in calls),
            f"[{', '.join([lead[calls[0].token], *map(str, calls[0].shape)])}] {calls[0].dtype}"
            + (f" x {len(calls)} calls" if len(calls) > 1 else ""),
        )
        for calls in batch.forms
    ]
