"""What a stage declares is what Python sees, and what its key is made of."""

import pytest

from fca.errors import FcaError
from fca.planning.declaration import STAGES, declaration
from fca.planning.recipe import recipe
from fca.store.external import Digests


def test_runtime_arguments_do_not_count(tmp_path):
    digests = Digests(tmp_path / "memory")
    arguments = {
        "model": "models/a",
        "inputs": "inputs/b",
        "split": "evaluation",
        "batch_size": 2,
        "precision": "float32",
    }
    plain = recipe("coefficients", arguments, digests)
    assert recipe("coefficients", arguments | {"device": "cuda", "threads": 4}, digests).key == plain.key
    assert recipe("coefficients", arguments | {"batch_size": 3}, digests).key != plain.key
    with pytest.raises(FcaError, match=r"missing \['split'\]"):
        recipe("coefficients", {k: v for k, v in arguments.items() if k != "split"}, digests)
    with pytest.raises(FcaError, match=r"unknown \['splits'\]"):
        recipe("coefficients", arguments | {"splits": 1}, digests)


@pytest.mark.parametrize("stage", STAGES)
def test_declarations_match_the_functions(stage):
    """What is read from the source is what Python sees."""
    import inspect
    from importlib import import_module

    signature = inspect.signature(getattr(import_module(f"fca.stages.{stage}"), stage))
    keywords = [p for p in signature.parameters.values() if p.kind == p.KEYWORD_ONLY]
    assert [a.name for a in declaration(stage).arguments] == [p.name for p in keywords]
    for argument, parameter in zip(declaration(stage).arguments, keywords, strict=True):
        if parameter.default is not parameter.empty:
            assert argument.default == parameter.default
