"""Every kind of message is documented, and holds nothing but its declared fields."""

from __future__ import annotations

from pathlib import Path

import pytest
from pydantic import ValidationError

from warehouse.messages.payloads import KINDS, decode_bytes, encode_bytes

PAGE = (Path(__file__).resolve().parents[3] / "docs" / "sites.md").read_text()


@pytest.mark.parametrize("kind", KINDS)
def test_kind_listed_in_the_documentation_with_what_it_reveals(kind: str):
    (line,) = [line for line in PAGE.splitlines() if line.startswith(f"| `{kind}` |")]
    _, _, sender, receiver, reveals, _ = (cell.strip() for cell in line.split("|"))
    assert reveals == KINDS[kind].reveals
    assert KINDS[kind].sender in sender and KINDS[kind].receiver in receiver


def test_documentation_lists_no_other_message():
    section = PAGE.split("## Messages")[1].split("##")[0]
    listed = [line.split("`")[1] for line in section.splitlines() if line.startswith("| `")]
    assert listed == list(KINDS)


@pytest.mark.parametrize("kind", KINDS)
def test_kind_with_another_field_refused(kind: str):
    with pytest.raises(ValidationError):
        KINDS[kind].payload.model_validate({"a_record": [1.0, 2.0]})


def test_encode_bytes_round_trip():
    assert decode_bytes(encode_bytes(b"\x00\xff")) == b"\x00\xff"
    with pytest.raises(ValueError, match=r".*"):
        decode_bytes("not base64!")
