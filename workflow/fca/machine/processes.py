"""In: the processes that a launcher such as torchrun started. Out: a group that trains one model.

accelerate is imported where it is needed: a plan is checked without torch.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fca.errors import FcaError

if TYPE_CHECKING:
    from accelerate import PartialState


def check_split(batch_size: int, processes: int) -> None:
    """Raise FcaError unless every process gets equally many sequences of a batch."""
    if batch_size % processes:
        possible = ", ".join(str(n) for n in range(1, batch_size + 1) if batch_size % n == 0)
        raise FcaError(
            f"training.batch_size is {batch_size}, which training.processes, {processes}, do not split "
            f"evenly; processes can be {possible}"
        )


def join(processes: int, device: str) -> PartialState:
    """The group that the launcher's variables (RANK, WORLD_SIZE, ...) describe.

    Raises FcaError where it is not of that size: each process would train a model of its own.
    """
    from accelerate import PartialState

    group = PartialState(cpu=device == "cpu")
    if group.num_processes != processes:
        raise FcaError(
            f"training.processes is {processes}, but on device {device!r} the group has "
            f"{group.num_processes}; start it with "
            f"`torchrun --standalone --nproc-per-node {processes} -m fca models ...`"
        )
    return group


def agreed(found: bool) -> bool:
    """What the main process found, in every process of the group, so that all go the same way."""
    from accelerate.utils import broadcast_object_list

    return broadcast_object_list([found])[0]
