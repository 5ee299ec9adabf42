"""How a stage declares what each of its arguments is: the types that stand in its signature.

A stage is `stage(into: Path, *, ...)`. A plain type (str, int, float, dict) is a parameter and part
of the key. The types below say what else an argument can be; `X | None` may be left out, and
`tuple[X, ...]` takes several.

Functions stand here by name: what only a plan calls is no part of a stage's code.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated


@dataclass(frozen=True)
class Reads:
    """The folder of an artifact that one of these stages made; its key is part of the key."""

    stages: tuple[str, ...]


@dataclass(frozen=True)
class External:
    """A path, glob or name outside the store; the content of its files is part of the key.

    files: the function `module:name` that lists them, [(name, path)], from the value, or from the
    value and another argument's, `of`.
    """

    files: str
    of: str = ""


@dataclass(frozen=True)
class NamesCode:
    """A parameter that names code of this package, which is part of the key.

    module: the function `module:name` that gives the code's module, or None, from the value.
    """

    module: str


@dataclass(frozen=True)
class Runtime:
    """How to run, not what is made: no part of the key."""


@dataclass(frozen=True)
class OnDevice(Runtime):
    """`auto` stands for the accelerator that is found."""


@dataclass(frozen=True)
class Together(Runtime):
    """How many processes run the stage together."""


@dataclass(frozen=True)
class Resumes:
    """A folder that survives a kill; the command gives it, no plan does."""


Inputs = Annotated[Path, Reads(("inputs",))]
Model = Annotated[Path, Reads(("models", "imports"))]
Recording = Annotated[Path, Reads(("coefficients",))]
Profiles = Annotated[Path, Reads(("profiles",))]
Replay = Annotated[Path, Reads(("replay",))]
LayerMap = Annotated[Path, Reads(("layers",))]

Corpus = Annotated[str, External("fca.inputs.corpus:files", of="corpus")]
Tokenizer = Annotated[str, External("fca.store.external:files_at")]
Checkpoint = Annotated[str, External("fca.models.kinds:files", of="kind")]
Kind = Annotated[str, NamesCode("fca.models.kinds:module_name")]

Device = Annotated[str, OnDevice()]
Threads = Annotated[int, Runtime()]
Processes = Annotated[int, Together()]
Count = Annotated[int, Runtime()]  # of steps between saved states, of sequences at a time
Resume = Annotated[Path, Resumes()]
