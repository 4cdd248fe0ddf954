"""`ppdm schema`: the JSON schema of what a command prints with `--json`."""

from __future__ import annotations

import json
from typing import Any

from ppdm.cli.replies import REPLIES, ErrorBody
from ppdm.cli.replies.others import SchemaReply
from ppdm.cli.result import SCHEMA_VERSION, CommandResult, name_schema
from ppdm_core.model.errors import BadInput
from ppdm_core.settings.errors import suggest_name

DIALECT = "https://json-schema.org/draft/2020-12/schema"


def describe_schema(name: str | None) -> CommandResult:
    """Return the schema of a command, or the names of all."""
    if name is None:
        names = list(REPLIES)
        lines = ["ppdm schema NAME prints the schema of one of these:", *map("  {}".format, names)]
        return CommandResult("\n".join(lines), SchemaReply(names=names).as_payload())
    if name not in REPLIES:
        raise BadInput(f"No command is called '{name}'.", remedy=suggest_name(name, list(REPLIES)))
    document = build_schema(name)
    return CommandResult(
        json.dumps(document, indent=2), SchemaReply(document=document).as_payload()
    )


def build_schema(name: str) -> dict[str, Any]:
    """Return the schema of a reply: the keys of all replies, and those of the command.

    A command that failed has the former alone, unless its result is the failure: a refused release
    has both.
    """
    body = REPLIES[name].model_json_schema(mode="serialization")
    error = ErrorBody.model_json_schema(mode="serialization")
    envelope = {
        "schema": {"const": name_schema(name)},
        "ok": {"type": "boolean"},
        "exit_code": {"type": "integer"},
        "error": {"anyOf": [{"type": "null"}, {"$ref": "#/$defs/ErrorBody"}]},
    }
    return {
        "$schema": DIALECT,
        "$id": f"urn:ppdm:{name}:{SCHEMA_VERSION}",
        "title": f"ppdm {name} --json",
        "type": "object",
        "properties": {**envelope, **body.get("properties", {})},
        "required": list(envelope),
        "additionalProperties": body.get("additionalProperties", True),
        "if": {"properties": {"error": {"type": "null"}}},
        "then": {"required": body.get("required", [])},
        "$defs": {**body.get("$defs", {}), **error.pop("$defs", {}), "ErrorBody": error},
    }
