"""How a stage function declares what each of its arguments is.

A stage is `stage(into: Path, *, ...)`. Unmarked arguments are parameters and part of the key.
"""

from pathlib import Path
from typing import Annotated

READ = "read"  # an upstream artifact's folder; its key is part of the key
EXTERNAL = "external"  # a path, glob or name outside the store; its content is part of the key
RUNTIME = "runtime"  # how to run, not what: no part of the key
RESUME = "resume"  # a folder that survives a kill, given by the command line

Read = Annotated[Path, READ]
External = Annotated[str, EXTERNAL]
Device = Annotated[str, RUNTIME]
Threads = Annotated[int, RUNTIME]
Count = Annotated[int, RUNTIME]  # of processes, of steps between saved states, ...
Resume = Annotated[Path, RESUME]
