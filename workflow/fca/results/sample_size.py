"""In: results. Out: how many inputs a retention interval of some width needs, model by model."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from fca.results.results import Model, Results
from fca.statistics.effects import Losses, difference
from fca.statistics.intervals import Bootstrap
from fca.statistics.power import Power, inputs_for, power


@dataclass(frozen=True)
class SampleSize:
    """One model's answer for one intervention. power: None where its retention is undefined."""

    model: Model
    intervention: str
    inputs: int
    documents: int
    power: Power | None

    @property
    def needed(self) -> int | None:
        """Inputs for the width asked for."""
        return inputs_for(self.power.documents, self.inputs, self.documents) if self.power else None

    def sentence(self, width: float) -> str:
        """One line for a person."""
        who = f"{self.model.name}, seed {self.model.seed}, {self.intervention}"
        if self.power is None:
            return f"{who}: retention is undefined, since the gap is not clearly above 0"
        if self.power.width is None:
            return f"{who}: unknown, since one document has no spread"
        now = f"{100 * self.power.width:.1f} points wide with {self.inputs} inputs"
        wanted = f"{100 * width:g} points wide"
        needed = f"{self.needed:,} inputs" if self.needed is not None else "more inputs than anyone has"
        return f"{who}: the retention interval is {now}; {wanted} takes about {needed}"

    def too_wide(self, width: float) -> bool:
        """Whether the audit at hand cannot tell retentions this far apart, such as 95 % from 100 %."""
        return self.power is None or self.power.width is None or self.power.width > width

    def far_from(self, retention: float) -> bool:
        """Whether the interval, wide as it is, does not hold this retention."""
        if self.power is None or self.power.width is None:
            return False
        return abs(self.power.value - retention) > self.power.width / 2


def losses_of(model: Model, bootstrap: Bootstrap) -> Losses:
    """A model's losses by document, as its effects were estimated from."""
    frame = model.frame("effects", "inputs.csv")
    names = [c for c in frame if c not in ("input", "document", "live")]
    return Losses.of({n: frame[n].to_numpy() for n in names}, frame["document"].to_numpy(), bootstrap)


def sample_sizes(results: Results, width: float, intervention: str = "layer_mean") -> Iterator[SampleSize]:
    """One per audited model that was replayed under the intervention."""
    settings = results.config["effects"]
    bootstrap = Bootstrap(settings["resamples"], settings["confidence"], results.config["seed"])
    for model in results.audited:
        losses = losses_of(model, bootstrap)
        if intervention not in losses.sums:
            continue
        found = None
        if losses.gap.above_zero:
            kept, gap = difference("global_mean", intervention), difference("global_mean", "correct")
            found = power(losses.total(kept), losses.total(gap), width, settings["confidence"])
        yield SampleSize(model, intervention, int(np.sum(losses.inputs)), len(losses.inputs), found)


def resolution(results: Results) -> float:
    """The width that the verdict on static profiles asks for: 100 % less the convention, 5 points."""
    return 1 - results.config["conventions"]["static_enough"]


def print_power(index: Path, width: float | None, intervention: str) -> None:
    """A line per model, and a warning where what is there cannot tell what the verdict needs."""
    results = Results(index)
    wanted = resolution(results) if width is None else width
    found = list(sample_sizes(results, wanted, intervention))
    for size in found:
        print(size.sentence(wanted))
    if not found:
        print(f"no audited model was replayed under {intervention}")
    for line in warnings(results, found):
        print(f"warning: {line}")


def warnings(results: Results, found: list[SampleSize]) -> list[str]:
    width = resolution(results)
    return [
        f"{size.model.name}, seed {size.model.seed}: {size.inputs} inputs cannot tell "
        f"{100 * (1 - width):g} % from 100 % retention"
        for size in found
        if size.too_wide(width) and not size.far_from(1 - width)
    ]
