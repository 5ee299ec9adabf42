"""In: a job's stage and arguments, its model's and its text's sizes. Out: what it will take.

This is the one place that says what a job needs; the rules ask it for memory and time, and
`fca plan` adds it up.
"""

import math
from collections.abc import Mapping
from typing import Any

from fca.forecast.needs import SINGLE, WITH_TORCH, WITHOUT_TORCH, Needs, Text
from fca.interventions.draws import is_random
from fca.models.sizes import Sizes

# ASSUME: a document has 2,000 bytes or more, and what is kept of it takes 200.
DIGESTS = 0.1
# Of a recording, after lossless compression; noise in the last digits of a float32 does not compress.
COMPRESSED = 0.85
LARGEST_BATCH = 32  # inputs in a batch whose size the memory decides, 0 in its arguments


def needs(stage: str, arguments: Mapping[str, Any], model: Sizes | None, text: Text) -> Needs:
    """What a job of a stage takes. model: None for the inputs stage and an analysis' outputs."""
    if stage == "inputs" or model is None:
        # digests of all documents, to find duplicates; tokens of those that inputs are cut from
        held = DIGESTS * text.corpus + SINGLE * text.cut_tokens
        return Needs(stored=text.training_tokens * text.token_bytes, memory=WITHOUT_TORCH + held)
    return STAGES[stage](arguments, model, text)


def batch_of(arguments: Mapping[str, Any], model: Sizes, text: Text) -> int:
    """Inputs in a batch; replays take their recording's, which is handed on as `batch_size`."""
    asked = arguments["batch_size"]
    return min(asked or LARGEST_BATCH, max(text.calibration, text.evaluation))


def share_of(arguments: Mapping[str, Any], text: Text) -> int:
    """Inputs that the job goes through: all of its split, or one shard's."""
    whole = text.inputs(arguments.get("split", "evaluation"))
    return math.ceil(whole / arguments.get("shards", 1))


def weights(model: Sizes, precision: str) -> float:
    return model.parameters * (2 if precision == "bfloat16" else SINGLE)


def frozen_pass(arguments: Mapping[str, Any], model: Sizes, text: Text) -> float:
    """Bytes of a model and one batch in a pass: weights, the residual's copies, logits with the
    float32 ones their losses need, coefficients as the device's, the store's and a donor's copy. Or
    of loading it, where the file holds another precision and both are there for a moment.
    """
    tokens = batch_of(arguments, model, text) * text.length
    residual = tokens * model.width * model.streams * SINGLE
    logits = tokens * model.vocabulary * 2 * SINGLE
    emitted = tokens * model.coefficients * 3 * SINGLE
    held = weights(model, arguments.get("precision", "float32"))
    file = model.file or weights(model, "float32")
    converted = file if abs(file - held) > 0.2 * held else 0
    return WITH_TORCH + held + max(converted, residual + logits + emitted)


def models(arguments: Mapping[str, Any], model: Sizes, text: Text) -> Needs:
    """Three times the forward pass; weights, gradients and AdamW's two moments in float32, and what
    the backward pass needs of one micro-batch, in every process.
    """
    processes = arguments.get("processes", 1)
    share = math.ceil(arguments["batch_size"] / processes)
    tokens = min(arguments.get("micro_batch_size") or share, share) * text.length
    # ASSUME: about 20 residual-wide tensors per layer are kept for the backward pass
    kept = tokens * (model.layers * (20 + model.streams) * model.width + 3 * model.vocabulary) * SINGLE
    return Needs(
        flops=3 * model.flops(text.length) * arguments["steps"] * arguments["batch_size"] * text.length,
        trained=True,
        processes=processes,
        stored=model.parameters * SINGLE,
        memory=processes * (WITH_TORCH + 4 * model.parameters * SINGLE + kept),
    )


def imports(arguments: Mapping[str, Any], model: Sizes, text: Text) -> Needs:
    return Needs()


def coefficients(arguments: Mapping[str, Any], model: Sizes, text: Text) -> Needs:
    tokens = share_of(arguments, text) * text.length
    return Needs(
        flops=model.flops(text.length) * tokens,
        stored=tokens * (model.coefficients * COMPRESSED + 2) * SINGLE,
        memory=frozen_pass(arguments, model, text),
    )


def draws(arguments: Mapping[str, Any]) -> int:
    return arguments["repeats"] if is_random(arguments["intervention"]) else 1


def replay(arguments: Mapping[str, Any], model: Sizes, text: Text) -> Needs:
    """One pass per draw, and a live and a replayed one for what is compared."""
    inputs, batch = share_of(arguments, text), batch_of(arguments, model, text)
    compared = min(inputs, math.ceil(arguments.get("compared", 0) / batch) * batch)
    passes = draws(arguments) * (inputs + 2 * compared)
    return Needs(
        flops=model.flops(text.length) * passes * text.length,
        stored=draws(arguments) * inputs * text.length * SINGLE,
        memory=frozen_pass(arguments, model, text),
    )


def layers(arguments: Mapping[str, Any], model: Sizes, text: Text) -> Needs:
    """A base pass, and for each layer what lies above it; the base's blocks are kept in memory."""
    inputs = share_of(arguments, text)
    passes = 1 + draws(arguments) * (model.layers + 1) / 2
    tokens = batch_of(arguments, model, text) * text.length
    remembered = tokens * model.width * model.layers * 5 * SINGLE
    return Needs(
        flops=model.flops(text.length) * passes * inputs * text.length,
        stored=draws(arguments) * model.layers * inputs * text.length * SINGLE,
        memory=frozen_pass(arguments, model, text) + remembered,
    )


def execution(arguments: Mapping[str, Any], model: Sizes, text: Text) -> Needs:
    """Every round times the live, the frozen, the static and a dense model."""
    modes = 4 if arguments.get("dense") else 3
    tokens = batch_of(arguments, model, text) * text.length
    return Needs(
        flops=model.flops(text.length) * modes * (arguments["rounds"] + 4) * tokens,
        memory=frozen_pass(arguments, model, text) * (2 if modes == 4 else 1),
    )


def analysis(passes: int, copies: int):
    """Stages that go through the recorded coefficients batch by batch, without a network."""

    def found(arguments: Mapping[str, Any], model: Sizes, text: Text) -> Needs:
        whole = text.inputs("evaluation") * text.length * max(model.coefficients, 1)
        batch = batch_of(arguments, model, text) * text.length * model.coefficients
        return Needs(
            stored=text.length * model.coefficients * 8,
            memory=WITHOUT_TORCH + copies * 8 * batch + 6 * 8 * text.length * model.coefficients,
            analysed=passes * whole,
        )

    return found


def effects(arguments: Mapping[str, Any], model: Sizes, text: Text) -> Needs:
    """All replays' losses are held at once; resamples are drawn in blocks."""
    count = len(arguments.get("replays", ())) * 3 + len(arguments.get("maps", ())) * model.layers
    losses = count * text.inputs("evaluation") * text.length
    return Needs(memory=WITHOUT_TORCH + 3 * SINGLE * losses, analysed=losses)


STAGES = {
    "models": models,
    "imports": imports,
    "coefficients": coefficients,
    "profiles": analysis(passes=1, copies=2),
    "replay": replay,
    "layers": layers,
    "variance": analysis(passes=3, copies=4),
    "effects": effects,
    "execution": execution,
}
