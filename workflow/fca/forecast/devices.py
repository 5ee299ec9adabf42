"""What accelerators can do at best, from their makers' data sheets, to turn operations into hours."""

from dataclasses import dataclass

from fca.errors import FcaError

# ASSUME: 40 % of the peak is reached, which large matrix products do and small models do not.
UTILISATION = 0.4


@dataclass(frozen=True)
class Accelerator:
    """Peak operations per second without sparsity, by precision, and memory in bytes."""

    bfloat16: float
    float32: float
    memory: float

    def hours(self, flops: float, precision: str) -> float:
        peak = self.bfloat16 if precision == "bfloat16" else self.float32
        return flops / (peak * UTILISATION) / 3600


ACCELERATORS = {
    "v100": Accelerator(15.7e12, 15.7e12, 32e9),  # knows no bfloat16
    "a100": Accelerator(312e12, 19.5e12, 80e9),
    "l40s": Accelerator(362e12, 91.6e12, 48e9),
    "h100": Accelerator(989e12, 67e12, 80e9),
    "h200": Accelerator(989e12, 67e12, 141e9),
}


def accelerator(name: str) -> Accelerator:
    try:
        return ACCELERATORS[name.lower()]
    except KeyError:
        raise FcaError(f"--gpu {name!r}: known are {', '.join(ACCELERATORS)}") from None
