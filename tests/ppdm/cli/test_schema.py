"""The JSON schemas of the replies: complete, valid, and strict."""

from __future__ import annotations

import json
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from jsonschema.exceptions import ValidationError

from ppdm.cli.app import app
from ppdm.cli.replies import REPLIES
from ppdm.cli.result import CommandResult, build_failure, build_json
from ppdm.cli.schema import build_schema, describe_schema
from ppdm_core.model.errors import BadInput

STATUS: dict[str, Any] = {
    "release_id": "a-0001",
    "dataset": "a",
    "stage": "refused",
    "started": "2026-01-01T00:00",
    "method": "m",
    "verdict": "FAIL",
    "reason": "x",
    "next_step": "y",
}


def test_replies_every_command_has_a_schema() -> None:
    commands = {
        str(command.name or getattr(command.callback, "__name__", "")).replace("_", "-")
        for command in app.registered_commands
    }
    groups = {group.name for group in app.registered_groups}
    assert set(REPLIES) == commands | groups


@pytest.mark.extended
@pytest.mark.parametrize("name", REPLIES)
def test_schema_valid_versioned_and_printed(name: str) -> None:
    document = build_schema(name)
    Draft202012Validator.check_schema(document)
    assert document["properties"]["schema"] == {"const": f"ppdm.{name}.1"}
    assert json.loads(describe_schema(name).text) == document
    failed = build_json(name, build_failure(BadInput("M.", remedy="R.")))
    Draft202012Validator(document).validate(failed)


def test_schema_reply_without_keys_or_with_words_refused() -> None:
    check = Draft202012Validator(build_schema("status"))
    check.validate(build_json("status", CommandResult("", {"runs": [STATUS]})))
    for runs in ([{**STATUS, "more": 1}], [{**STATUS, "verdict": "fine"}], None):
        with pytest.raises(ValidationError):
            check.validate(build_json("status", CommandResult("", {"runs": runs})))
    with pytest.raises(ValidationError):
        check.validate(build_json("status", CommandResult("", {})))


def test_schema_unknown_command_suggested() -> None:
    with pytest.raises(BadInput, match="status"):
        describe_schema("statsu")
    assert describe_schema(None).payload["names"] == list(REPLIES)
