"""In: `package.module:function`. Out: the torch module that the user's function makes."""

from importlib import import_module
from typing import Any

import torch
from torch import nn

from fca.errors import FcaError
from fca.store.external import look_here


def load(source: str, dtype: torch.dtype, options: dict[str, Any]) -> nn.Module:
    """Call the factory without arguments; it returns a module that maps token ids to logits.

    The folder that the run was started in can hold the module. Raises FcaError where the factory
    is missing or returns something else.
    """
    name, _, function = source.partition(":")
    if not function:
        raise FcaError(f"factory {source!r}: expected package.module:function")
    look_here()
    try:
        factory = getattr(import_module(name), function)
    except (ImportError, AttributeError) as error:
        raise FcaError(f"factory {source!r} cannot be imported: {error}") from None
    model = factory()
    if not isinstance(model, nn.Module):
        raise FcaError(f"factory {source!r} returned a {type(model).__name__}, not a torch.nn.Module")
    return model.to(dtype)
