"""How often do the intervals hold the truth, by number of documents and kind of loss?

python benchmarks/coverage.py [--samples 1000] [--resamples 1000]

Prints the table of docs/coverage.md: per cell the share of samples whose 95 % interval holds the truth,
among those that are given one, and in brackets the share that is refused ("too few documents").
"""

import argparse
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from fca.statistics.intervals import Bootstrap

Sample = tuple[NDArray, NDArray]  # numerator and denominator, [document]
SIZES = (3, 5, 8, 12, 16, 24, 32, 64, 128, 300, 1000)


def alike(draw: Callable) -> Callable[[np.random.Generator, int], Sample]:
    """Documents of one input each."""
    return lambda rng, n: (draw(rng, n), np.ones(n))


def unequal(rng: np.random.Generator, n: int) -> Sample:
    """Documents of 1 to 5 inputs that share a part of their loss."""
    inputs = rng.integers(1, 6, n).astype(float)
    own = rng.normal(1, 1, n) * np.sqrt(inputs) + (inputs - np.sqrt(inputs))
    return own + rng.normal(0, 0.5, n) * inputs, inputs


def rare_class(share: float) -> Callable[[np.random.Generator, int], Sample]:
    """A class of tokens that a share of the documents holds, 1 token or more each."""

    def draw(rng: np.random.Generator, n: int) -> Sample:
        tokens = np.where(rng.random(n) < share, rng.poisson(2, n) + 1, 0).astype(float)
        return 0.5 * tokens + rng.normal(0, 1, n) * np.sqrt(tokens), tokens

    return draw


def rare_loss(share: float) -> Callable[[np.random.Generator, int], Sample]:
    """All documents have tokens, a share of them loses anything."""
    return alike(lambda rng, n: np.where(rng.random(n) < share, rng.exponential(1, n), 0.0))


#: kind of loss -> how a sample is drawn, and the true ratio
LOSSES: dict[str, tuple[Callable[[np.random.Generator, int], Sample], float]] = {
    "normal": (alike(lambda rng, n: rng.normal(1, 1, n)), 1.0),
    "skewed (exponential)": (alike(lambda rng, n: rng.exponential(1, n)), 1.0),
    "heavy tails (Laplace)": (alike(lambda rng, n: rng.laplace(0, 1, n)), 0.0),
    "heavier tails (t, 3 degrees)": (alike(lambda rng, n: rng.standard_t(3, n)), 0.0),
    "normal of exponential scale": (alike(lambda rng, n: rng.normal(0, 1, n) * rng.exponential(1, n)), 0.0),
    "unequal documents": (unequal, 1.0),
    "class in 30 % of documents": (rare_class(0.3), 0.5),
    "class in 10 % of documents": (rare_class(0.1), 0.5),
    "loss in 30 % of documents": (rare_loss(0.3), 0.3),
    "loss in 10 % of documents": (rare_loss(0.1), 0.1),
    "skewed and heavy (log-normal)": (alike(lambda rng, n: rng.lognormal(0, 1, n)), float(np.exp(0.5))),
}


def coverage(loss: str, documents: int, samples: int, resamples: int, seed: int = 0) -> tuple[float, float]:
    """Share of the given intervals that hold the truth (NaN without any), and share refused."""
    draw, truth = LOSSES[loss]
    rng = np.random.default_rng([seed, documents, *loss.encode()])
    bootstrap, held, given = Bootstrap(resamples), 0, 0
    for _ in range(samples):
        found = bootstrap.ratio(*draw(rng, documents))
        if found.low is not None and found.high is not None:
            given += 1
            held += found.low <= truth <= found.high
    return held / given if given else float("nan"), 1 - given / samples


def cell(loss: str, documents: int, samples: int, resamples: int) -> str:
    """At least a tenth of the samples must be given an interval to speak of its coverage."""
    held, refused = coverage(loss, documents, samples, resamples)
    if refused > 0.9:
        return "refused"
    return f"{100 * held:.1f}" + (f" ({100 * refused:.0f})" if refused >= 0.005 else "")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--samples", type=int, default=1000)
    parser.add_argument("--resamples", type=int, default=1000)
    given = parser.parse_args()
    print("| loss | " + " | ".join(map(str, SIZES)) + " |")
    print("|---" * (len(SIZES) + 1) + "|")
    for loss in LOSSES:
        cells = [cell(loss, n, given.samples, given.resamples) for n in SIZES]
        print(f"| {loss} | " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main()
