"""In: the calibration recording. Out: the mean from which every static profile follows.

Writes profiles.zarr: mean [token, coefficient] in float64, with the recording's labels.
"""

from pathlib import Path

from fca.artifacts.parameters import Read
from fca.artifacts.recording import open_recording


def profiles(into: Path, *, calibration: Read) -> None:
    """Average the calibration coefficients over inputs, one batch in memory at a time."""
    recording = open_recording(calibration / "recording.zarr")
    mean = recording["coefficients"].mean("input", dtype="float64").rename("mean")
    mean.to_dataset().to_zarr(into / "profiles.zarr", zarr_format=3, consolidated=False)
