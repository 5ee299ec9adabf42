"""In: the artifacts of replays, one per shard. Out: replays of the whole set, and their proofs."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import reduce
from operator import add
from pathlib import Path

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from fca.errors import FcaError
from fca.interventions.multiset import Multisets

MULTISETS = "multisets.npz"


def by_shards(folders: Sequence[Path]) -> list[list[Path]]:
    """Artifacts of the replay or layers stage, grouped by what was done and sorted by shard.

    Raises FcaError where a shard is missing.
    """
    groups: dict[tuple, dict[int, Path]] = {}
    expected: dict[tuple, int] = {}
    for folder in folders:
        proofs = read_proofs(folder)
        what = (proofs["intervention"], proofs.get("order"))
        groups.setdefault(what, {})[proofs["shard"]] = folder
        expected[what] = proofs["shards"]
    for what, found in groups.items():
        if sorted(found) != list(range(expected[what])):
            raise FcaError(f"{what[0]}: {len(found)} of {expected[what]} shards were given")
    return [[found[shard] for shard in sorted(found)] for found in groups.values()]


def read_proofs(folder: Path) -> dict:
    return json.loads((folder / "proofs.json").read_text())


def joined_proofs(shards: Sequence[Path]) -> dict:
    """The proofs of all shards as one; what they hold together is compared here.

    Raises ProofError where a reassignment changed a coefficient's multiset.
    """
    found = [read_proofs(shard) for shard in shards]
    joined = found[0] | {"controller_runs": sum(proofs["controller_runs"] for proofs in found)}
    if "identity" in joined and joined["identity"] is not None:
        joined["identity"] = all(proofs["identity"] for proofs in found)
    files = [shard / MULTISETS for shard in shards if (shard / MULTISETS).is_file()]
    if len(files) not in (0, len(shards)):  # all of a reassignment's shards have one, none of others'
        raise FcaError(f"{joined['intervention']}: {MULTISETS} is missing in one of {len(shards)} shards")
    if files:
        for draw in range(len(np.load(files[0])["found"])):
            held = [np.load(file) for file in files]
            parts = [Multisets(file["expected"][draw], file["found"][draw]) for file in held]
            reduce(add, parts).check(joined["intervention"])
        joined["multisets_kept"] = True
    return joined


@dataclass(frozen=True)
class Replayed:
    """One intervention's replay. nll [repeat, input, target] in nats, None where it is undefined."""

    name: str
    proofs: dict
    nll: NDArray | None
    measures: dict[str, NDArray] = field(default_factory=dict)  # [input], repeats averaged

    @classmethod
    def read(cls, shards: Sequence[Path]) -> "Replayed":
        """From the artifacts of its shards, in order."""
        proofs = joined_proofs(shards)
        if "undefined" in proofs:
            return cls(proofs["intervention"], proofs, None)
        parts = [xr.open_zarr(shard / "replay.zarr", consolidated=False, chunks=None) for shard in shards]
        measures = {
            name: np.concatenate([part[name].values.mean(axis=0) for part in parts])
            for name in sorted(map(str, parts[0]))  # a folder lists its arrays in any order
            if name != "nll"
        }
        nll = np.concatenate([part["nll"].values for part in parts], axis=1)
        return cls(proofs["intervention"], proofs, nll, measures)

    @property
    def defined(self) -> bool:
        return self.nll is not None

    @property
    def values(self) -> NDArray:
        assert self.nll is not None
        return self.nll

    @property
    def by_token(self) -> NDArray[np.float64]:
        """[input, target], repeats averaged first."""
        return self.values.mean(axis=0, dtype=np.float64)

    @property
    def by_repeat(self) -> NDArray[np.float64]:
        """[repeat, input]."""
        return self.values.mean(axis=2, dtype=np.float64)

    @property
    def by_input(self) -> NDArray[np.float64]:
        return self.by_repeat.mean(axis=0)

    @property
    def repeats(self) -> int:
        return len(self.values)

    @property
    def repeat_sd(self) -> float | str:
        """Deviation between the repeats' mean losses, nats per token."""
        return float(self.by_repeat.mean(axis=1).std(ddof=1)) if self.repeats > 1 else "undefined"


def write_multisets(into: Path, kept: Sequence[Multisets]) -> None:
    """multisets.npz: of every draw, for those who join the shards."""
    if kept:
        np.savez(
            into / MULTISETS,
            expected=np.stack([m.expected for m in kept]),
            found=np.stack([m.found for m in kept]),
        )


def write_proofs(into: Path, proofs: dict) -> None:
    (into / "proofs.json").write_text(json.dumps(proofs, indent=1) + "\n")
