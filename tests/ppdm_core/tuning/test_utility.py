from __future__ import annotations

import math

import pytest

from ppdm_core.metrics import METRICS
from ppdm_core.model.errors import BadInput
from ppdm_core.tuning.utility import (
    Utility,
    check_applies,
    choose_default,
    list_utilities,
    normalize,
    parse_utilities,
)
from tests.ppdm_core.tuning.trials import make_accuracy, make_score


def test_list_utilities_names_that_stewards_know():
    known = {"best_accuracy", "neighbourhoods", "clusters", "distances", "correlation"}
    assert known <= set(list_utilities())


def test_compute_one_metric_share_of_the_way_to_the_original():
    figure = Utility({"best_accuracy": 1.0}).compute([make_accuracy(0.7)])
    assert figure is not None
    assert math.isclose(figure.share, 0.5)  # from 0.5 to 0.9
    assert figure.words == "best_accuracy 70.0 %"


def test_compute_less_is_better_share_grows_as_the_error_falls():
    error = make_score(
        "correlation_error", 0.1, kind="utility", baseline=0.4, original=0.0, half=0.02
    )
    figure = Utility({"correlation_error": 1.0}).compute([error])
    assert figure is not None
    assert math.isclose(figure.share, 0.75)
    assert figure.low < figure.share < figure.high


@pytest.mark.parametrize("original", [0.74, 0.75, 0.7501, 0.9])
@pytest.mark.parametrize("name", ["best_accuracy", "correlation_error"])
def test_normalize_better_values_larger_shares_whatever_the_original(name: str, original: float):
    better = METRICS[name].better
    scores = [
        make_score(name, value, kind="utility", better=better, baseline=0.75, original=original)
        for value in (0.6, 0.75, 0.76, 0.9)
    ]
    shares = [normalize(score)[0] for score in scores]
    assert shares == sorted(set(shares), reverse=better == "down")


def test_compute_weights_mean_of_shares():
    error = make_score("correlation_error", 0.0, kind="utility", baseline=0.4, original=0.0)
    utility = parse_utilities(["best_accuracy=3", "correlation"])
    figure = utility.compute([make_accuracy(0.7), error])
    assert figure is not None
    assert math.isclose(figure.share, 0.75 * 0.5 + 0.25 * 1.0)


def test_compute_metric_not_measured_none():
    assert parse_utilities(["best_accuracy", "clusters"]).compute([make_accuracy(0.7)]) is None


@pytest.mark.parametrize("text", ["accuracy", "clusters=0", "clusters=x", "clusters=-1", ""])
def test_parse_utilities_wrong_text_one_sentence(text: str):
    with pytest.raises(BadInput) as error:
        parse_utilities([text])
    assert error.value.remedy


def test_check_applies_no_label_one_sentence():
    with pytest.raises(BadInput, match="needs a label column"):
        check_applies(parse_utilities(["best_accuracy"]), has_label=False, has_numbers=True)
    with pytest.raises(BadInput, match="works on numbers"):
        check_applies(parse_utilities(["clusters"]), has_label=True, has_numbers=False)


def test_choose_default_classes_numbers_and_categories():
    assert METRICS[choose_default(True, True).metrics[0]].utility_name == "best_accuracy"
    assert not METRICS[choose_default(False, True).metrics[0]].needs_label
    assert METRICS[choose_default(False, False).metrics[0]].utility_name == "frequencies"
