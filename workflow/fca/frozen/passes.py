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

from fca.controllers.forms import Form
from fca.controllers.sites import Site
from fca.errors import FcaError, ProofError
from fca.frozen.capture import Capture
from fca.frozen.loss import measured, run
from fca.frozen.playback import Playback
from fca.frozen.prepare import check_independence, check_padding, extent, tensor_of
from fca.machine.counting import peak_bytes

#: of a batch: inputs -> [batch, token, coefficient]
CoefficientsOf = Callable[[slice], np.ndarray]


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


def _finite(nll: Tensor, inputs: slice) -> np.ndarray:
    values = nll.cpu().numpy()
    bad = ~np.isfinite(values).all(axis=1)
    if bad.any():
        raise FcaError(f"the loss of input {inputs.start + int(bad.argmax())} is NaN or infinite")
    return values


@torch.no_grad()
def recording_bytes(model: nn.Module, sites: Sequence[Site], inputs: np.ndarray) -> int:
    """Peak bytes of the tensors of a recording pass over inputs, losses and coefficients included."""
    ids = tensor_of(inputs, model)

    def recorded() -> tuple[Tensor, Tensor | None]:
        with Capture(model, sites) as capture:
            logits = run(model, ids)
            held = capture.take(*extent(ids))[0] if sites else None
        return measured(logits, ids), held  # alive together, as in a recording

    return peak_bytes(recorded)


@torch.no_grad()
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


@torch.no_grad()
def replay(
    model: nn.Module,
    sites: Sequence[Site],
    forms: Sequence[Sequence[Form]],
    tokens: np.ndarray,
    coefficients: CoefficientsOf,
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
            try:
                nll = _finite(measured(logits, ids), inputs)
            except FcaError as error:
                raise ProofError(
                    f"{error} under replay: a disabled controller's weights, NaN meanwhile, reached "
                    "it, or the coefficients that were played back overflow"
                ) from None
            runs = playback.controller_runs
            yield Batch(inputs, nll, digest(logits), controller_runs=runs)
