"""Time of a layer map over 16 layers against 16 full replays, interleaved in one run.

python benchmarks/layer_map.py [--kind featuregate] [--rounds 7] prints both times and their ratio.
The networks have random weights; time does not depend on their values.
"""

import argparse
import time

import numpy as np
import torch

from fca.architectures import featuregate, mudd
from fca.frozen.layer_map import changes, reusable, variants
from fca.frozen.passes import record, replay
from fca.machine.counting import flops

KINDS = {"featuregate": featuregate, "mudd": mudd}
LAYERS = 16


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--kind", choices=KINDS, default="featuregate")
    parser.add_argument("--width", type=int, default=512)
    parser.add_argument("--length", type=int, default=128)
    parser.add_argument("--inputs", type=int, default=4)
    parser.add_argument("--vocabulary", type=int, default=256)
    parser.add_argument("--draws", type=int, default=1, help="of a random intervention; they share one base")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--threads", type=int, default=1)
    given = parser.parse_args()
    torch.set_num_threads(given.threads)
    torch.manual_seed(0)
    module = KINDS[given.kind]
    model = module.build(
        {
            "layers": LAYERS,
            "width": given.width,
            "heads": max(given.width // 64, 1),
            "vocabulary": given.vocabulary,
            "length": given.length,
        }
    )
    for name, parameter in model.named_parameters():  # controllers start out constant: make them vary
        if "gate.out" in name or ".w2.weight" in name:
            torch.nn.init.normal_(parameter, std=0.5)
    model.eval().requires_grad_(False)
    sites = module.sites(model)
    tokens = np.random.default_rng(0).integers(0, given.vocabulary, (given.inputs, given.length))
    live = next(iter(record(model, sites, tokens, given.inputs)))
    correct = live.coefficients
    others = [np.roll(correct, 1 + draw, axis=0) for draw in range(given.draws)]
    layers = np.repeat([s.layer for s in sites], [sum(f.channels for f in calls) for calls in live.forms])
    masks = changes(layers, "alone")[1]

    def mapped() -> list[np.ndarray]:
        found = variants(
            model, sites, live.forms, reusable(model), tokens,
            lambda i: correct[i], [lambda i, o=o: o[i] for o in others], masks, given.inputs,
        )  # fmt: skip
        return [part.nll for part in found if part.draw is not None]

    def full() -> list[np.ndarray]:
        values = [np.where(mask, other, correct) for other in others for mask in masks]
        return [
            next(iter(replay(model, sites, live.forms, tokens, lambda i, v=v: v[i], given.inputs))).nll
            for v in values
        ]

    assert all(np.array_equal(a, b) for a, b in zip(mapped(), full(), strict=True))  # and a warm-up
    seconds = {"map": [], "full": []}
    for turn in range(given.rounds):
        order = [("map", mapped), ("full", full)]
        for what, go in order if turn % 2 else reversed(order):
            started = time.perf_counter()
            go()
            seconds[what].append(time.perf_counter() - started)
    operations = flops(mapped).total / flops(full).total
    ratios = np.array(seconds["map"]) / np.array(seconds["full"])
    low, middle, high = np.quantile(ratios, [0.25, 0.5, 0.75])
    print(
        f"{given.kind}, {LAYERS} layers of width {given.width}, {given.inputs} x {given.length} tokens, "
        f"vocabulary {given.vocabulary}, {given.threads} threads: map {np.median(seconds['map']):.2f} s, "
        f"{LAYERS * given.draws} full replays {np.median(seconds['full']):.2f} s, "
        f"ratio {middle:.3f} (quartiles {low:.3f} to {high:.3f}, {given.rounds} rounds), "
        f"of their operations {operations:.3f}"
    )


if __name__ == "__main__":
    main()
