"""In: jobs, how long each takes and how many cores. Out: when the last one is done."""

import heapq
from collections.abc import Mapping, Sequence

from fca.planning.jobs import Job


def makespan(
    jobs: Sequence[Job], seconds: Mapping[str, float], threads: Mapping[str, int], cores: int
) -> float:
    """Seconds until all jobs are done, each started when what it reads is there and cores are free.

    Jobs that are not listed count as done. threads: of each job, by name; more than there are
    cores count as all of them. Jobs are taken in the order given, which is that of the data flow.
    """
    waiting = {job.name: {n for names in job.reads.values() for n in names} for job in jobs}
    names = list(waiting)
    running: list[tuple[float, str]] = []
    now, free, done = 0.0, cores, set()
    while names or running:
        for name in list(names):
            ready = all(n in done or n not in waiting for n in waiting[name])
            taken = min(threads[name], cores)
            if ready and taken <= free:
                free -= taken
                heapq.heappush(running, (now + seconds[name], name))
                names.remove(name)
        now, name = heapq.heappop(running)
        free += min(threads[name], cores)
        done.add(name)
    return now
