"""In: a folder with config.json and weights. Out: the model, ready to be audited, and its sites.

Weights are read from safetensors, one file or sharded, or from pytorch_model.bin with
weights_only; nothing is ever unpickled as code.
"""

import json
from pathlib import Path

import torch
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from fca.artifacts.external import MEMORY, Digests, files_below
from fca.errors import FcaError
from fca.networks.choice import choose
from fca.networks.device import place
from fca.networks.kinds import TRAINED, module
from fca.networks.sites import Site

MUDD_TYPES = ("muddpythia", "muddformer")
IMPORT = "import.json"  # in place of weights, in the artifact of an imported model


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
        facts = json.loads((folder / IMPORT).read_text())
        if "digest" in facts:
            memory = Digests(folder.parents[1] / MEMORY)
            facts["source"] = checked(facts, memory)
            memory.save()
        model, sites = load_import(facts, dtype)
    else:
        model, sites = load_trained(folder)
    model.to(dtype=dtype).eval().requires_grad_(False)
    return place(model, device), sites


def checked(facts: dict, digests: Digests) -> str:
    """Where imported files are: where they were, or where the config's name leads on this machine.

    Raises FcaError where they are in neither place, or where what is there is not what the artifact
    was made from; never are they looked for at a hub instead.
    """
    found = [path for path in (facts["path"], facts["source"]) if Path(path).exists()]
    for path in found:
        if digests.of_files(files_below(Path(path))) == facts["digest"]:
            return path
    what = "has changed since it was imported" if found else "is not on this machine"
    raise FcaError(
        f"models.checkpoint: {facts['source']!r} {what}; what was recorded from it can be used, but no "
        "pass can be run"
    )


def load_import(facts: dict, dtype: torch.dtype) -> tuple[nn.Module, list[Site]]:
    """A model that lives outside the store. facts: kind, source, sites, options."""
    if facts["kind"] in TRAINED:
        model, sites = load_trained(Path(facts["source"]))
    else:
        model = module(facts["kind"]).load(facts["source"], dtype, facts["options"])
        sites = []
    return model, choose(model, facts["sites"], sites)


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
