"""In: steps of a long loop. Out: lines on standard error that show how far it is."""

import sys
import time
from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

from tqdm import tqdm

T = TypeVar("T")
EVERY = 10.0  # seconds between lines in a log
LINE = "{desc}: {n_fmt} of {total_fmt} ({percentage:.0f} %), {elapsed} so far, {remaining} left{postfix}"


def progress(
    steps: Iterable[T],
    label: str,
    total: int | None = None,
    done: int = 0,
    note: Callable[[], str] = lambda: "",
) -> Iterator[T]:
    """Iterate with a bar on a terminal, and with a plain line every ten seconds in a log.

    done: steps made before this run. note(): a few words shown behind, such as the loss.
    """
    total = len(steps) + done if total is None else total  # type: ignore[arg-type]
    if sys.stderr.isatty():
        with tqdm(desc=label, total=total, initial=done, dynamic_ncols=True) as bar:
            for step in steps:
                yield step
                bar.set_postfix_str(note(), refresh=False)
                bar.update()
        return
    started = shown = time.monotonic()
    for count, step in enumerate(steps, start=1):
        yield step
        now = time.monotonic()
        if now - shown >= EVERY or (count + done == total and shown > started):
            shown = now
            line = tqdm.format_meter(
                count + done,
                total,
                now - started,
                prefix=f"{label}: ",
                initial=done,
                bar_format=LINE.replace("{desc}: ", "{desc}"),
                postfix=note() or None,
            )
            print(line, file=sys.stderr, flush=True)
