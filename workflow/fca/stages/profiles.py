"""In: the calibration recording. Out: the mean from which every static profile follows.

Writes profiles.zarr: mean [token, coefficient] in float64, with the recording's labels.
"""

from pathlib import Path

from fca.recordings.reading import open_recordings
from fca.stages.arguments import Recording


def profiles(into: Path, *, calibration: tuple[Recording, ...]) -> None:
    """Average the calibration coefficients over inputs, one batch in memory at a time."""
    recording = open_recordings(calibration)
    mean = recording["coefficients"].mean("input", dtype="float64").rename("mean")
    # threads would each hold a batch
    mean.to_dataset().compute(scheduler="synchronous").to_zarr(
        into / "profiles.zarr", zarr_format=3, consolidated=False
    )
