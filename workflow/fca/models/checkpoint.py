"""In: a folder with config.json and weights. Out: the model, ready to be audited, and its sites."""

import json
from pathlib import Path

import torch
from torch import nn

from fca.controllers.choice import choose
from fca.controllers.sites import Site
from fca.errors import FcaError
from fca.machine.device import place
from fca.models.imported import IMPORT, Imported
from fca.models.kinds import TRAINED, module
from fca.models.weights import fill, read_weights

MUDD_TYPES = ("muddpythia", "muddformer")


def load_checkpoint(
    folder: Path | str, device: str = "cpu", precision: str = "float32"
) -> tuple[nn.Module, list[Site]]:
    """A frozen model in evaluation mode and its sites.

    folder: one written here (trained or imported), or a published MUDDPythia or MUDDFormer.
    precision: float32 or bfloat16. Raises FcaError for missing files and for parameters that are
    missing or unknown.
    """
    folder = Path(folder)
    dtype = dtype_of(precision)
    if (folder / IMPORT).is_file():
        model, sites = load_import(Imported.read(folder), dtype)
    else:
        model, sites = load_trained(folder)
    model.to(dtype=dtype).eval().requires_grad_(False)
    return place(model, device), sites


def load_import(noted: Imported, dtype: torch.dtype) -> tuple[nn.Module, list[Site]]:
    """A model that lives outside the store."""
    source = noted.found()
    if noted.kind in TRAINED:
        model, sites = load_trained(Path(source))
    else:
        model = module(noted.kind).load(source, dtype, noted.options)
        sites = []
    return model, choose(model, noted.sites, sites)


def load_trained(folder: Path) -> tuple[nn.Module, list[Site]]:
    """A model of a kind that is known here, from config.json and its weights."""
    architecture = read_config(folder)
    kind = kind_of(architecture, folder)
    build = module(kind).build
    rename = getattr(module(kind), "rename", lambda name: name)
    model = build({k: v for k, v in architecture.items() if k != "kind"})
    weights = {rename(name): tensor for name, tensor in read_weights(folder).items()}
    fill(model, weights, folder)
    return model, module(kind).sites(model)


def read_config(folder: Path) -> dict:
    try:
        return json.loads((folder / "config.json").read_text())
    except OSError:
        raise FcaError(f"{folder}: no config.json; a checkpoint is config.json + model.safetensors") from None
    except ValueError as error:
        raise FcaError(f"{folder / 'config.json'}: not JSON ({error})") from None


def kind_of(architecture: dict, folder: Path) -> str:
    if "kind" in architecture:
        return architecture["kind"]
    if architecture.get("model_type") in MUDD_TYPES:
        return "mudd"
    raise FcaError(
        f"{folder / 'config.json'}: model_type {architecture.get('model_type')!r} is not a kind of "
        f"model known here; known: {', '.join(MUDD_TYPES)}, or a `kind`"
    )


def dtype_of(precision: str) -> torch.dtype:
    try:
        return {"float32": torch.float32, "bfloat16": torch.bfloat16}[precision]
    except KeyError:
        raise FcaError(f"precision {precision!r}: known are float32 and bfloat16") from None
