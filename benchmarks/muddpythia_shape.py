"""The MUDD audit at the full shape of MUDDPythia-1.4B, with random weights, on a CPU.

Writes a sharded checkpoint in the released format into FOLDER (about 3 GB), then audits it
through the workflow on a few short inputs, and prints sizes, time and the largest memory of any
process. Two runs: the first writes, the second audits, so that the memory of writing is not
counted.

    python benchmarks/muddpythia_shape.py FOLDER
"""

import json
import re
import resource
import subprocess
import sys
import time
from pathlib import Path

import torch
from safetensors.torch import save_file

from fca.architectures import mudd

ROOT = Path(__file__).resolve().parents[1]
SHAPE = {
    "model_type": "muddpythia",
    "vocab_size": 50304,
    "block_size": 2048,
    "n_layer": 24,
    "n_head": 16,
    "dim": 2048,
    "intermediate_size": 8192,
    "rotary_pct": 0.25,
}
OVERLAY = """
analysis: muddpythia-shape
store: {folder}/store
inputs:
  length: 128
  calibration: 4
  evaluation: 4
  split: {{training: 0.0, calibration: 0.5, evaluation: 0.5}}
models: [{{name: mudd-1.4B, kind: mudd, checkpoint: {folder}/checkpoint}}]
passes: {{batch_size: 2, threads: {threads}}}
interventions: [cross_input, token_shuffle, global_mean, layer_mean]
repeats: 1
layers: {{interventions: []}}
divergence: {{inputs: 2}}
execution: {{batch_size: 2, rounds: 2, threads: {threads}}}
"""


def official(name: str) -> str:
    """Our parameter's name in the released files."""
    name = re.sub(r"^mixers\.(\d+)\.bias$", r"dense_bs.\1", name)
    return re.sub(r"^mixers\.", "dynamic_dense.", name)


def write_checkpoint(folder: Path) -> None:
    """Random weights in bfloat16, in two files with an index."""
    folder.mkdir(parents=True)
    torch.manual_seed(0)
    model = mudd.build(SHAPE)
    for name, parameter in model.named_parameters():
        if name.endswith("w2.weight") and name.startswith("mixers"):
            torch.nn.init.normal_(parameter, std=0.02)
    print(f"{sum(p.numel() for p in model.parameters()) / 1e9:.3f} billion parameters")
    weights = {official(n): p.detach().bfloat16().contiguous() for n, p in model.named_parameters()}
    names = sorted(weights)
    index = {}
    for number, part in enumerate((names[::2], names[1::2]), start=1):
        file = f"model-{number:05}-of-00002.safetensors"
        save_file({n: weights[n] for n in part}, folder / file)
        index |= dict.fromkeys(part, file)
    (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": index}))
    (folder / "config.json").write_text(json.dumps(SHAPE, indent=1))


def main() -> None:
    """Write the checkpoint if it is not there; else run the workflow and print what it took."""
    folder = Path(sys.argv[1]).resolve()
    if not (folder / "checkpoint").is_dir():
        write_checkpoint(folder / "checkpoint")
        print("checkpoint written; run the same command again to audit it")
        return
    overlay = folder / "shape.yaml"
    overlay.write_text(OVERLAY.format(folder=folder, threads=torch.get_num_threads()))
    started = time.perf_counter()
    command = ["snakemake", "--cores", str(torch.get_num_threads()), "all", "--configfile", str(overlay)]
    subprocess.run(command, cwd=ROOT, check=True)
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
    print(f"audit: {time.perf_counter() - started:.0f} s, largest process {peak / 1e6:.1f} GB resident")


if __name__ == "__main__":
    main()
