"""Every kind of message is documented, and holds nothing but its declared fields."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from warehouse.messages.payloads import (
    KINDS,
    Basis,
    ClassifierModel,
    Payload,
    SharedFit,
    decode_bytes,
    encode_bytes,
)

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


FIT = {
    "loadings": [[1.0], [0.0]],
    "variances": [2.0, 1.0],
    "ranges": [[-1.0, 1.0]],
    "dropped_variance": 0.5,
}
MODEL = {
    "sites": 1,
    "classes": [0, 1],
    "priors": [0.5, 0.5],
    "means": [[0.0, 1.0], [1.0, 2.0]],
    "variances": [[1.0, 1.0], [1.0, 1.0]],
}
BAD_CONTENT: dict[str, tuple[type[Payload], dict[str, Any], dict[str, Any]]] = {
    "ragged loadings of a basis": (
        Basis,
        {"loadings": [[1.0], [0.0]], "mean": [0.0, 0.0]},
        {"loadings": [[1.0], [0.0, 1.0]]},
    ),
    "ragged loadings of a fit": (SharedFit, FIT, {"loadings": [[1.0], []]}),
    "variance below zero": (SharedFit, FIT, {"variances": [2.0, -1.0]}),
    "dropped variance below zero": (SharedFit, FIT, {"dropped_variance": -3.2}),
    "range without an end": (SharedFit, FIT, {"ranges": [[-1.0]]}),
    "ragged means": (ClassifierModel, MODEL, {"means": [[0.0, 1.0], [1.0]]}),
    "ragged variances": (ClassifierModel, MODEL, {"variances": [[1.0, 1.0], [1.0]]}),
    "no variance": (ClassifierModel, MODEL, {"variances": [[1.0, 1.0], [1.0, 0.0]]}),
    "too few priors": (ClassifierModel, MODEL, {"priors": [1.0]}),
    "prior of zero": (ClassifierModel, MODEL, {"priors": [0.0, 1.0]}),
    "too few means": (ClassifierModel, MODEL, {"means": [[0.0, 1.0]]}),
    "no class": (
        ClassifierModel,
        MODEL,
        {"classes": [], "priors": [], "means": [], "variances": []},
    ),
    "class that is no code": (ClassifierModel, MODEL, {"classes": [0, 2**40]}),
}


@pytest.mark.parametrize("case", BAD_CONTENT)
def test_payload_content_that_cannot_be_used_refused(case: str):
    payload, sound, changes = BAD_CONTENT[case]
    assert payload.model_validate_json(json.dumps(sound))
    with pytest.raises(ValidationError):
        payload.model_validate_json(json.dumps({**sound, **changes}))


def test_encode_bytes_round_trip():
    assert decode_bytes(encode_bytes(b"\x00\xff")) == b"\x00\xff"
    with pytest.raises(ValueError, match=r".*"):
        decode_bytes("not base64!")
