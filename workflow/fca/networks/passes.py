"""In: a model, tokens, sites. Out, batch by batch: coefficients, losses, digests of the logits.

One loop for recording and one for replay, over the same batches: batch composition changes
results in the last digits, so replay must use the recording's.
"""

import hashlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn

from fca.errors import FcaError
from fca.networks.capture import Capture
from fca.networks.device import device_of
from fca.networks.loss import measured, run
from fca.networks.playback import Playback
from fca.networks.sites import Form, Site


@dataclass(frozen=True)
class Batch:
    """One batch's results. coefficients [batch, token, coefficient] float32 (live only),
    nll [batch, token - 1] float32 in nats, logits_sha256 of the logits' bytes; controller_runs
    so far, counted in replay.
    """

    inputs: slice
    nll: np.ndarray
    logits_sha256: str
    coefficients: np.ndarray | None = None
    forms: Sequence[Sequence[Form]] = ()
    controller_runs: int = 0


def batches(inputs: int, batch_size: int) -> list[slice]:
    return [slice(a, min(a + batch_size, inputs)) for a in range(0, inputs, batch_size)]


def digest(logits: Tensor) -> str:
    """sha256 over the logits' bytes: equal digests mean equal bit for bit."""
    return hashlib.sha256(logits.detach().contiguous().cpu().view(torch.uint8).numpy().data).hexdigest()


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


def _finite(nll: Tensor, inputs: slice) -> np.ndarray:
    values = nll.cpu().numpy()
    bad = ~np.isfinite(values).all(axis=1)
    if bad.any():
        raise FcaError(f"the loss of input {inputs.start + int(bad.argmax())} is NaN or infinite")
    return values


@torch.inference_mode()
def record(model: nn.Module, sites: Sequence[Site], tokens: np.ndarray, batch_size: int) -> Iterator[Batch]:
    """Run the unperturbed model and yield what its controllers emitted.

    Raises FcaError for sites never called, changing shape between batches, or not finite.
    """
    check_padding(model, tokens)
    known: list[list[Form]] | None = None
    for inputs in batches(len(tokens), batch_size):
        ids = tensor_of(tokens[inputs], model)
        if not sites:
            logits = run(model, ids)
            coefficients = None
            forms: list[list[Form]] = []
        else:
            with Capture(model, sites) as capture:
                logits = run(model, ids)
                captured, forms = capture.take(*extent(ids))
            if known is not None and forms != known:
                changed = next(s.path for s, a, b in zip(sites, known, forms) if a != b)
                raise FcaError(f"site {changed!r}: its output changed shape between batches")
            coefficients = captured.cpu().numpy()
            if known is None and len(ids) > 1:
                check_independence(model, sites, ids[:1], captured[:1], forms)
            known = forms
        nll = _finite(measured(logits, ids), inputs)
        yield Batch(inputs, nll, digest(logits), coefficients, forms)


@torch.inference_mode()
def replay(
    model: nn.Module,
    sites: Sequence[Site],
    forms: Sequence[Sequence[Form]],
    tokens: np.ndarray,
    coefficients: Callable[[slice], np.ndarray],
    batch_size: int,
) -> Iterator[Batch]:
    """Run the model with its controllers disabled on `coefficients(inputs)`.

    Raises ProofError where a controller ran or a recorded call was not played back.
    """
    with Playback(model, sites, forms) as playback:
        for inputs in batches(len(tokens), batch_size):
            ids = tensor_of(tokens[inputs], model)
            values = np.ascontiguousarray(coefficients(inputs), dtype=np.float32)
            playback.load(torch.from_numpy(values).to(ids.device))
            logits = run(model, ids)
            playback.finish()
            nll = _finite(measured(logits, ids), inputs)
            runs = playback.controller_runs
            yield Batch(inputs, nll, digest(logits), controller_runs=runs)
