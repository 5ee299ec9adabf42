"""In: a merged config. Out: the same, checked against the schema, or one clear message."""

import difflib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml
from jsonschema import Draft202012Validator
from jsonschema.exceptions import ValidationError, best_match
from snakemake.utils import update_config

from fca.errors import FcaError
from fca.machine.processes import check_split
from fca.models.kinds import KINDS

SCHEMA = Path(__file__).resolve().parents[2] / "schemas" / "config.schema.yaml"


def schema() -> dict[str, Any]:
    """The schema of a config: the file's, with every kind of model and its own options."""
    found = yaml.safe_load(SCHEMA.read_text())
    entry = found["properties"]["models"]["items"]
    entry["properties"]["kind"]["enum"] = list(KINDS)
    for name, kind in KINDS.items():
        entry["properties"] |= kind.options
        for option in kind.options:
            only = {"properties": {"kind": {"const": name}}}
            entry.setdefault("dependentSchemas", {})[option] = only
        if kind.required:
            given = {"properties": {"kind": {"const": name}}}
            entry["allOf"].append({"if": given, "then": {"required": list(kind.required)}})
    return found


def check(config: Mapping[str, Any]) -> None:
    """Raise FcaError for the most telling violation of the schema."""
    errors = list(Draft202012Validator(schema()).iter_errors(config))
    if errors:
        raise FcaError(f"config: {explain(most_telling(errors))}")
    for entry in config["models"]:
        training = {**config["training"], **entry.get("training", {})}
        check_split(training["batch_size"], training["processes"])


def most_telling(errors: list[ValidationError]) -> ValidationError:
    """An unknown key explains more than what else is wrong because of it."""
    for error in errors:
        if error.validator == "additionalProperties":
            return error
    return best_match(errors)


def explain(error: ValidationError) -> str:
    """Name the key, what was found and what is possible."""
    where = ".".join(str(part) for part in error.absolute_path)
    if error.validator in ("additionalProperties", "unevaluatedProperties"):
        known = list(error.schema.get("properties", {}))
        unknown = [key for key in error.instance if key not in known]
        key = unknown[0] if unknown else ""
        close = difflib.get_close_matches(key, known, n=1, cutoff=0.4)
        hint = f"did you mean {close[0]!r}?" if close else f"known: {', '.join(known)}"
        return f"unknown key {'.'.join(filter(None, [where, key]))!r}; {hint}"
    if error.validator == "required":
        missing = [key for key in error.validator_value if key not in error.instance]
        return f"missing key {'.'.join(filter(None, [where, missing[0]]))!r}"
    if error.validator == "enum":
        possible = ", ".join(map(str, error.validator_value))
        return f"{where} is {error.instance!r}; possible: {possible}"
    path = list(error.absolute_schema_path)
    if error.validator == "const" and "dependentSchemas" in path:
        option = path[path.index("dependentSchemas") + 1]
        found = error.instance
        return f"{where} is {found!r}, but {option!r} is an option of kind {error.validator_value!r}"
    return f"{where or 'the whole'}: {error.message}"


def load(*files: Path) -> dict[str, Any]:
    """Config files merged as Snakemake merges them: later over earlier, lists replaced whole."""
    merged: dict[str, Any] = {}
    for file in files:
        try:
            found = yaml.safe_load(file.read_text()) or {}
        except OSError as error:
            raise FcaError(f"{file}: {error.strerror}") from None
        except yaml.YAMLError as error:
            raise FcaError(f"{file}: not YAML: {error}") from None
        update_config(merged, found)
    return merged
