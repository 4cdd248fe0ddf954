"""Parameters are checked when a method is made, and refused in one wording."""

from __future__ import annotations

import math
import re
from dataclasses import fields
from typing import Any

import pytest

from ppdm_core.model.errors import BadInput
from ppdm_core.sanitizers import SANITIZERS
from tests.contract.checks import find_complaint

WORDING = re.compile(
    r"The '(\w+)' parameter of \w+ must be [^\n]+\. Got .+\. "
    r"Change '\1' in the \[sanitizer\] section\."
)
NONSENSE: tuple[Any, ...] = (
    "no such word",
    True,
    -1,
    1.5,
    10**400,
    math.nan,
    math.inf,
    [],
    [[-1]],
    {},
    {"a": 1},
    {"attribute": [1]},
    {"record": None},
    {"variance": "x"},
    {"method": []},
)
EVERY = [(key, field.name) for key, cls in SANITIZERS.items() for field in fields(cls)]


@pytest.mark.parametrize(("key", "name"), EVERY)
def test_sanitizer_nonsense_parameter_refused_in_one_wording(key: str, name: str):
    cls = SANITIZERS[key]
    messages = [find_complaint(cls, {**cls.example, name: value}) for value in NONSENSE]
    assert any(messages), "nothing is too absurd for it"
    for sentence in filter(None, messages):
        assert WORDING.fullmatch(sentence), sentence


def test_pca_laplace_basis_file_number_refused():
    with pytest.raises(BadInput, match="'basis_file' parameter of PcaLaplace must be a path"):
        SANITIZERS["pca_laplace"].from_parameters({"b": 1, "basis": "file", "basis_file": 5})
