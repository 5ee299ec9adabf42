"""What one job takes, and the sizes of the text that it goes through.

Memory and the time limit that a cluster is asked for follow from it.
"""

import math
from dataclasses import dataclass

MB = 1e6
# Resident memory of a process before it does anything, measured: with torch, and without it.
WITH_TORCH, WITHOUT_TORCH = 450 * MB, 250 * MB
# On a cluster each command runs below a Snakemake of its own, or two.
NESTED = 250 * MB
# ASSUME: a third more than what is counted, for allocators that keep what was freed.
SLACK = 1.3
# Bytes of a number: coefficients and losses are float32 everywhere.
SINGLE = 4

# ASSUME: at least so many operations per second, for the time a job asks for on a cluster: one
# core of an old server; one accelerator of the last years, at a part of its peak.
CORE = 5e9
ACCELERATOR = {"float32": 1e13, "bfloat16": 1e14}
LONGEST = 24 * 60  # minutes: what takes longer on CPUs is meant for the accelerator that `auto` may find
SHORTEST = 10  # minutes that any job asks for


@dataclass(frozen=True)
class Text:
    """Sizes of the inputs. calibration, evaluation: numbers of inputs; corpus: bytes of text;
    cut_tokens: in the documents that inputs are cut from.
    """

    length: int
    calibration: int
    evaluation: int
    training_tokens: float
    cut_tokens: float
    corpus: float
    token_bytes: int

    def inputs(self, split: str) -> int:
        return self.calibration if split == "calibration" else self.evaluation


@dataclass(frozen=True)
class Needs:
    """What one job takes.

    flops: floating-point operations of its matrix products; trained: they are optimiser steps;
    processes: that share them. stored: bytes that it publishes. memory: bytes of all its processes
    at most, on the device and off it together. analysed: values that analysis without a network
    goes through.
    """

    flops: float = 0.0
    trained: bool = False
    processes: int = 1
    stored: float = 0.0
    memory: float = WITHOUT_TORCH
    analysed: float = 0.0

    def mem_mb(self, attempt: int = 1) -> int:
        """What a cluster is asked for; a retry asks for more."""
        return math.ceil((self.memory * SLACK + NESTED) / MB / 100) * 100 * attempt

    def minutes(self, threads: int, device: str, precision: str, attempt: int = 1) -> int:
        """The time limit a cluster is asked for: twice what a slow machine would take."""

        def limit(rate: float) -> int:
            return SHORTEST + math.ceil(2 * (self.flops / rate + self.analysed / 1e6) / 60)

        on_cores, accelerated = limit(CORE * threads), limit(ACCELERATOR[precision] * self.processes)
        slow = device == "cpu" or (device == "auto" and on_cores <= LONGEST)
        return (on_cores if slow else accelerated) * attempt


#: of tables, figures and report: they read small tables, and matplotlib is the largest part
OUTPUT = Needs(memory=2 * WITHOUT_TORCH)
