"""In: a checkpoint and inputs. Out: what its controllers emit and the live loss, as a recording.

Writes recording.zarr. A model without controllers gets its losses recorded all the same.
"""

from dataclasses import asdict
from pathlib import Path

import numpy as np
import torch
from torch import nn

from fca.controllers.forms import coordinates
from fca.errors import FcaError
from fca.frozen.passes import batches, record, recording_bytes
from fca.machine.batch_size import LARGEST, fitting, free_bytes
from fca.machine.device import device_of
from fca.models.checkpoint import load_checkpoint
from fca.progress import progress
from fca.recordings.writing import RECORDING, Writer
from fca.stages.arguments import Device, Inputs, Model, Threads
from fca.store.manifest import processor


def coefficients(
    into: Path,
    *,
    model: Model,
    inputs: Inputs,
    split: str,
    batch_size: int,
    precision: str,
    shard: int = 0,
    shards: int = 1,
    device: Device = "cpu",
    threads: Threads = 1,
) -> None:
    """Run the unperturbed model once over a split and record coefficients and losses.

    batch_size: inputs per batch; 0 for as many as fit into memory, a power of two up to 32, which
    the recording then names. shard: which of `shards` parts of the split; each part is whole
    batches, so that the batches, and with them every bit of the results, are the same however many
    shards there are.

    The recording keeps what replay must repeat to be exact: batch size, precision, threads,
    the form of every site's output, and a digest of each batch's logits.
    """
    torch.set_num_threads(threads)
    windows = np.load(inputs / f"{split}.npz")
    # what fits is a divisor of the largest batch, so that shards agree on their borders
    mine = part(split, len(windows["tokens"]), batch_size or LARGEST, shard, shards)
    tokens = windows["tokens"][mine]
    network, sites = load_checkpoint(model, device, precision)
    check_fit(network, tokens)
    if not batch_size:
        free = free_bytes(device_of(network))
        batch_size = fitting(lambda n: recording_bytes(network, sites, tokens[:n]), len(tokens), free)
    writer: Writer | None = None
    logits_sha256: list[str] = []
    passes = record(network, sites, tokens, batch_size)
    label = f"record {split} coefficients"
    label += f", shard {shard + 1} of {shards}" if shards > 1 else ""
    for batch in progress(passes, label, len(batches(len(tokens), batch_size))):
        if writer is None:
            labels = coordinates(sites, batch.forms) if sites else {}
            emitted = batch.coefficients
            writer = Writer(
                into / RECORDING,
                inputs=len(tokens),
                batch_size=batch_size,
                tokens=tokens,
                document=windows["document"][mine],
                offset=windows["offset"][mine],
                token_axis=tokens.shape[1] if emitted is None else emitted.shape[1],
                coordinates=labels,
                attributes={
                    "split": split,
                    "shard": shard,
                    "shards": shards,
                    "batch_size": batch_size,
                    "precision": precision,
                    "threads": threads,
                    "processor": processor(),
                    "device": str(device),
                    "forms": [[asdict(form) for form in calls] for calls in batch.forms],
                },
            )
        writer.write(batch.inputs, batch.nll, batch.coefficients)
        logits_sha256.append(batch.logits_sha256)
    if writer is None:
        raise FcaError(f"the {split} split holds no inputs")
    writer.close({"logits_sha256": logits_sha256})


def part(split: str, inputs: int, batch_size: int, shard: int, shards: int) -> slice:
    """The inputs of one shard: whole batches, as evenly as they can be shared out."""
    whole = batches(inputs, batch_size)
    if shards > len(whole):
        raise FcaError(
            f"passes.shards is {shards}, but the {split} set has only {len(whole)} batches of {batch_size}"
        )
    own = np.array_split(np.arange(len(whole)), shards)[shard]
    return slice(whole[own[0]].start, whole[own[-1]].stop)


def check_fit(network: nn.Module, tokens: np.ndarray) -> None:
    """Refuse inputs that are longer than the model allows or hold tokens it does not know."""
    config = getattr(network, "config", None)

    def limit(*names: str) -> float:
        return next((getattr(config, n) for n in names if getattr(config, n, None)), float("inf"))

    longest = limit("length", "block_size", "max_position_embeddings", "context_length")
    if tokens.shape[1] > longest:
        raise FcaError(f"inputs.length is {tokens.shape[1]} tokens, but the model's longest is {longest}")
    vocabulary = limit("vocabulary", "vocab_size")
    if tokens.max() >= vocabulary:
        raise FcaError(
            f"inputs.tokenizer gives token {tokens.max()}, but the model knows {vocabulary}; "
            "use the model's own tokenizer"
        )
