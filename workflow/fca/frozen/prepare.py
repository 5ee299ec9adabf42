"""In: what a person gives as inputs. Out: tensors for a model, or what is wrong with them."""

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor, nn

from fca.controllers.forms import Form
from fca.controllers.sites import Site
from fca.errors import FcaError
from fca.frozen.capture import Capture
from fca.frozen.loss import run
from fca.machine.device import device_of


def tensor_of(inputs: np.ndarray, model: nn.Module) -> Tensor:
    """Token ids, or floating-point inputs in the model's precision, on the model's device."""
    own = next((p.dtype for p in model.parameters()), torch.float32)
    kind = torch.int64 if np.issubdtype(inputs.dtype, np.integer) else own
    return torch.from_numpy(inputs).to(device=device_of(model), dtype=kind)


def extent(inputs: Tensor) -> tuple[int, int]:
    """Batch and number of tokens; inputs that are no token ids count as one token."""
    return inputs.shape[0], 1 if inputs.is_floating_point() else inputs.shape[1]


def check_tokens(tokens) -> np.ndarray:
    """Token ids as an integer array [input, token] with at least two tokens.

    Floating-point inputs [input, ...], such as images, pass as they are.
    """
    try:
        array = np.asarray(tokens.cpu() if isinstance(tokens, Tensor) else tokens)
    except ValueError:
        raise FcaError("tokens: the sequences have different lengths; one length is needed") from None
    if array.ndim > 2 and np.issubdtype(array.dtype, np.floating):
        return array
    if array.ndim != 2 or array.shape[1] < 2 or not np.issubdtype(array.dtype, np.integer):
        raise FcaError(
            f"tokens: expected integers [input, token] with at least 2 tokens, "
            f"found {array.dtype} {array.shape}"
        )
    return array


def check_padding(model: nn.Module, tokens: np.ndarray) -> None:
    """Refuse padded inputs: without a mask the padding would be read as text."""
    padding = getattr(getattr(model, "config", None), "pad_token_id", None)
    if padding is None or tokens.ndim != 2:
        return
    for side, column in (("left", 0), ("right", -1)):
        padded = np.flatnonzero(tokens[:, column] == padding)
        if len(padded):
            raise FcaError(
                f"input {padded[0]} is padded on the {side} (token {padding}); inputs must be text of "
                "one length, so cut them shorter instead"
            )


def check_independence(
    model: nn.Module,
    sites: Sequence[Site],
    first: Tensor,
    together: Tensor,
    forms: Sequence[Sequence[Form]],
) -> None:
    """Refuse a site whose output for an input depends on which others are in the batch.

    ASSUME: up to 1 % of the coefficients' spread is rounding (batch composition changes results
    by about 3e-6, and a token may then take another expert), and 30 units of rounding in half
    precision; what is coupled differs by far more.
    """
    with Capture(model, sites) as capture:
        run(model, first)
        alone, _ = capture.take(*extent(first))
    precision = next((p.dtype for p in model.parameters()), torch.float32)
    allowed = max(0.01, 30 * torch.finfo(precision).eps)
    start = 0
    for site, calls in zip(sites, forms):
        stop = start + sum(form.channels for form in calls)
        a, b = alone[..., start:stop], together[..., start:stop]
        spread = (b - b.mean()).abs().mean() + 1e-3 * b.abs().mean()
        if (a - b).abs().mean() > allowed * spread:
            raise FcaError(
                f"site {site.path!r}: its output for an input depends on the others in the batch; "
                "use passes.batch_size 1 or another site"
            )
        start = stop
