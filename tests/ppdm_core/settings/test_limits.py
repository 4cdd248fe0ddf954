"""Which limits are bad input."""

from __future__ import annotations

import math

import pytest

from ppdm_core.model.errors import BadInput
from ppdm_core.model.policy import Limit, Policy
from ppdm_core.settings.limits import check_limit
from ppdm_core.settings.policy_text import check_policy, parse_policy

LINE = '"{name}" = {{ value = {value}, set_by = "a", reason = "b" }}'
SMALLEST = {
    "record_linkage.rate": 0.0,
    "membership.auc": 0.0,
    "shrinkage.interval_privacy": 0.0,
    "label.rate": 0.0,
    "amplification.record": 1.0,
}


@pytest.mark.parametrize("name", SMALLEST)
@pytest.mark.parametrize("key", ["value", "review"])
@pytest.mark.parametrize("absolute", [False, True])
def test_check_limit_below_any_figure_bad_input(name: str, key: str, absolute: bool) -> None:
    smallest = SMALLEST[name]
    check_limit(name, Limit(smallest, "a", "b", absolute))
    for value in (smallest - 0.001, -math.inf, math.inf, math.nan):
        given = {"value": 2.0, "review": None, key: value}
        limit = Limit(given["value"] or 0.0, "a", "b", absolute, review=given["review"])
        with pytest.raises(BadInput, match=f"'{key}' key of limit '{name}' must be") as caught:
            check_limit(name, limit)
        assert caught.value.remedy == f"Correct '{key}'."


def test_check_limit_utility_may_be_negative_but_finite() -> None:
    check_limit("knn_accuracy.deterioration", Limit(-0.01, "a", "b", absolute=True))
    with pytest.raises(BadInput, match="must be a number"):
        check_limit("knn_accuracy", Limit(math.nan, "a", "b", absolute=True))


@pytest.mark.parametrize("value", ["-0.1", "nan", "inf", "-inf"])
def test_parse_policy_bad_number_bad_input(value: str) -> None:
    line = LINE.format(name="record_linkage.rate", value=value)
    with pytest.raises(BadInput, match=r"'value' key of limit 'record_linkage\.rate' must be"):
        parse_policy(f"[limits]\n{line}\n".encode())


@pytest.mark.parametrize("name", ["label.auc", "label.partial.rate", "label.breach_rate"])
def test_check_policy_other_score_of_the_label_bad_input(name: str) -> None:
    check_policy(Policy((), {"label.rate": Limit(0.05, "a", "b")}))
    with pytest.raises(BadInput):
        check_policy(Policy((), {name: Limit(0.05, "a", "b")}))
