"""In: a checkpoint, its recording and profile, a dense twin. Out: what each really executes.

Writes tables/execution.csv (one row per mode: live, frozen, static, dense) and rounds.csv (latency of
every mode in every round, seconds).
"""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from fca.frozen.loss import run
from fca.frozen.model import FrozenModel
from fca.frozen.playback import Playback
from fca.frozen.prepare import tensor_of
from fca.interventions.profiles import profile
from fca.machine.counting import counted_blocks, experts_executed, flops, peak_bytes
from fca.machine.device import device_of
from fca.machine.timing import seconds_of
from fca.models.checkpoint import load_checkpoint
from fca.progress import progress
from fca.recordings.tables import write_table
from fca.stages.arguments import Device, Model, Profiles, Recording, Threads


def execution(
    into: Path,
    *,
    model: Model,
    evaluation: tuple[Recording, ...],
    profiles: Profiles,
    dense: Model | None,
    batch_size: int,
    rounds: int,
    seed: int,
    device: Device = "cpu",
    threads: Threads = 1,
) -> None:
    """Count blocks, FLOPs, parameters and memory, and time all modes in interleaved rounds.

    static is the model that replays its layer_mean profile: what is left to run once that is folded
    in. Ratios are taken within a round, so a machine that slows down slows both.
    """
    frozen = FrozenModel.open(model, evaluation, device)
    torch.set_num_threads(threads)
    network = frozen.network
    tokens = tensor_of(frozen.tokens[:batch_size], network)
    own = frozen.correct(slice(0, len(tokens)))
    constant = np.broadcast_to(profile("layer_mean", frozen.mean(profiles)), own.shape)

    def played(values: NDArray) -> Callable[[], Tensor]:
        coefficients = torch.from_numpy(np.ascontiguousarray(values, dtype=np.float32)).to(tokens.device)

        def go() -> Tensor:
            playback.load(coefficients)
            return run(network, tokens)

        return go

    playback = Playback(network, frozen.sites, frozen.forms, watched=False)
    controllers = sum(p.numel() for p in playback.parameters)
    modes: dict[str, Mode] = {
        "live": Mode(network, lambda: run(network, tokens)),
        "frozen": Mode(network, played(own), playback, controllers),
        "static": Mode(network, played(constant), playback, controllers),
    }
    if dense is not None:
        twin, _ = load_checkpoint(dense, device, frozen.recording.attrs["precision"])
        modes["dense"] = Mode(twin, lambda: run(twin, tokens))
    seconds = time_rounds(modes, rounds, seed)
    rows = [
        {"mode": name, **mode.counts(tokens), **latency(seconds, name, tokens.numel())}
        for name, mode in modes.items()
    ]
    write_table(into, "execution", pd.DataFrame(rows))
    seconds.rename_axis("round").to_csv(into / "rounds.csv")


class Mode:
    """One way of running a model; `playback` disables its controllers while it runs."""

    def __init__(
        self,
        network: nn.Module,
        go: Callable[[], Tensor],
        playback: Playback | None = None,
        unused_parameters: int = 0,
    ):
        self.network, self.playback = network, playback
        self.go = go
        self.parameters = sum(p.numel() for p in network.parameters()) - unused_parameters

    def within(self, action: Callable):
        """action(), with the controllers disabled where this mode does that."""
        with torch.inference_mode():
            if self.playback is None:
                return action()
            with self.playback:
                return action()

    def counts(self, tokens: Tensor) -> dict[str, float | int | str]:
        def count() -> dict[str, int]:
            with counted_blocks(self.network) as counted:
                self.go()
            return counted

        executed = self.within(count)
        counted = self.within(lambda: flops(self.go))
        experts = experts_executed(self.network, counted, tokens.numel()) or ("undefined", "undefined")
        return {
            "blocks_present": len(executed),
            "blocks_executed_per_token": sum(executed.values()) / tokens.numel(),
            "experts_present": experts[0],
            "experts_executed_per_token": experts[1],
            "flops_per_token": counted.total / tokens.numel(),
            "parameters": self.parameters,
            "peak_bytes": self.within(lambda: peak_bytes(self.go)),
        }

    def time(self) -> float:
        return self.within(lambda: seconds_of(self.go, device_of(self.network)))


def time_rounds(modes: dict[str, Mode], rounds: int, seed: int) -> pd.DataFrame:
    """Seconds per pass, one row a round; the order of the modes is drawn anew in each round."""
    rng = np.random.default_rng(seed)
    names = list(modes)
    for name in names:
        modes[name].time()  # warm-up: the first pass allocates
    rows = []
    for _ in progress(range(rounds), "time execution"):
        row = {names[i]: 0.0 for i in range(len(names))}
        for i in rng.permutation(len(names)):
            row[names[i]] = modes[names[i]].time()
        rows.append(row)
    return pd.DataFrame(rows)


def latency(seconds: pd.DataFrame, mode: str, tokens: int) -> dict[str, float | str]:
    """Median and quartiles of the latency and of its ratio to dense within each round.

    ASSUME: medians, since a shared machine's delays are rare and large; ratios within a round,
    since they are common to what runs in it.
    """
    own = seconds[mode]
    low, middle, high = own.quantile([0.25, 0.5, 0.75])
    row: dict[str, float | str] = {
        "latency_ms": 1000 * middle,
        "latency_ms_q1": 1000 * low,
        "latency_ms_q3": 1000 * high,
        "tokens_per_second": tokens / middle,
    }
    names = ("ratio_to_dense_q1", "ratio_to_dense", "ratio_to_dense_q3")
    if "dense" not in seconds:
        return row | dict.fromkeys(names, "undefined")
    ratios = (own / seconds["dense"]).quantile([0.25, 0.5, 0.75])
    return row | dict(zip(names, map(float, ratios)))
