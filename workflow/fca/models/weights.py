"""In: a checkpoint's folder. Out: its parameters by name, and a model filled with them.

Weights are read from safetensors, one file or sharded, or from pytorch_model.bin with
weights_only; nothing is ever unpickled as code.
"""

import json
from pathlib import Path

import torch
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from fca.errors import FcaError


def read_weights(folder: Path) -> dict[str, Tensor]:
    """All parameters of a checkpoint by their names in the files."""
    for index in ("model.safetensors.index.json", "pytorch_model.bin.index.json"):
        if (folder / index).is_file():
            names = sorted(set(json.loads((folder / index).read_text())["weight_map"].values()))
            break
    else:
        names = [n for n in ("model.safetensors", "pytorch_model.bin") if (folder / n).is_file()][:1]
    if not names:
        raise FcaError(f"{folder}: neither model.safetensors (whole or sharded) nor pytorch_model.bin")
    weights: dict[str, Tensor] = {}
    for name in names:
        path = folder / name
        if not path.is_file():
            raise FcaError(f"{folder}: the index names {name}, which is not there")
        try:
            weights |= (
                load_file(path)
                if path.suffix == ".safetensors"
                else torch.load(path, map_location="cpu", weights_only=True)
            )
        except Exception as error:  # damaged files raise many kinds; which file is what helps
            raise FcaError(f"{path}: cannot be read as weights ({error})") from None
    return weights


def fill(model: nn.Module, weights: dict[str, Tensor], folder: Path) -> None:
    """Load weights by name; every parameter must be there, in its shape, and no other."""
    own = model.state_dict()
    for problem, names in (
        ("misses", sorted(own.keys() - weights.keys())),
        ("has unknown", sorted(weights.keys() - own.keys())),
        ("has wrong shapes for", [n for n in own if n in weights and own[n].shape != weights[n].shape]),
    ):
        if names:
            shown = ", ".join(names[:6]) + (f" and {len(names) - 6} more" if len(names) > 6 else "")
            raise FcaError(f"{folder}: the checkpoint {problem} parameters {shown}")
    # assigned, not copied: a checkpoint is in memory once
    model.load_state_dict(weights, assign=True)


def save_checkpoint(folder: Path, kind: str, architecture: dict, model: nn.Module) -> None:
    """config.json and model.safetensors."""
    config = {"kind": kind, **architecture}
    (folder / "config.json").write_text(json.dumps(config, indent=1) + "\n")
    save_file({k: v.contiguous().cpu() for k, v in model.state_dict().items()}, folder / "model.safetensors")
