from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ppdm_core.sanitizers import SANITIZERS, make_sanitizer
from ppdm_core.sanitizers._sweep import SweepScope, round_down, round_up
from ppdm_core.tuning.setting import (
    Setting,
    list_settings,
    merge_changes,
    thin_axes,
)

NUMBERS = SweepScope(numeric=5, categorical=0, gamma=1100.0, has_ids=True)
PRESENT = Setting("pca_laplace", {"components": 1, "b": 0.3, "basis": "sample"})


def test_list_settings_present_one_first_and_bounded():
    found = list_settings(PRESENT, ["pca_laplace"], NUMBERS, 24)
    assert found[0] == PRESENT
    assert 10 < len(found) <= 24
    assert len({setting.digest for setting in found}) == len(found)


def test_setting_title_values_as_in_the_release_file():
    setting = Setting("m", {"translation": True, "gamma": {"record": 33.1}})
    assert setting.title == "m: translation true, gamma record 33.1"


def test_list_settings_pca_laplace_varies_noise_components_and_basis():
    found = list_settings(PRESENT, ["pca_laplace"], NUMBERS, 60)[1:]
    assert {setting.parameters["basis"] for setting in found} == {"sample", "private"}
    assert len({setting.parameters["components"] for setting in found}) > 2
    assert len({setting.parameters["gamma"]["record"] for setting in found}) > 2
    assert all("b" not in setting.parameters for setting in found)


def test_list_settings_limit_on_gamma_is_tried_and_one_above():
    found = list_settings(PRESENT, ["pca_laplace"], NUMBERS, 200)[1:]
    gammas = {setting.parameters["gamma"]["record"] for setting in found}
    assert 1100.0 in gammas
    assert sum(gamma > 1100 for gamma in gammas) == 1


def test_list_settings_no_ids_no_records_set_aside():
    scope = SweepScope(numeric=5, categorical=0, gamma=1100.0, has_ids=False)
    found = list_settings(PRESENT, ["pca_laplace"], scope, 24)[1:]
    assert {setting.parameters["basis"] for setting in found} == {"private"}


def test_list_settings_several_methods_share_the_number():
    found = list_settings(PRESENT, ["pca_laplace", "additive_noise"], NUMBERS, 13)
    methods = [setting.method for setting in found]
    assert methods.count("additive_noise") == 6
    assert len(found) <= 13


@pytest.mark.parametrize("method", SANITIZERS)
@pytest.mark.parametrize("gamma", [None, 1100.0])
def test_list_axes_every_method_settings_are_valid(method: str, gamma: float | None):
    cls = SANITIZERS[method]
    kinds = {"numeric": 6, "categorical": 4}
    counts = {kind: count if kind in cls.accepts else 0 for kind, count in kinds.items()}
    scope = SweepScope(**counts, gamma=gamma, has_ids=True)
    present = Setting(method, dict(cls.suggest_parameters(scope.features, 1000.0)))
    found = list_settings(present, [method], scope, 30)
    assert len(found) > 1 or not cls.list_axes(scope, present.parameters)
    for setting in found:
        make_sanitizer(setting.method, setting.parameters)


def test_merge_changes_none_removes_and_parts_are_merged():
    given = {"b": 1, "numeric": {"method": "m", "b": 2, "components": 3}}
    changes = [{"b": None}, {"numeric": {"b": None, "gamma": {"record": 9.0}}}]
    assert merge_changes(given, changes) == {
        "numeric": {"method": "m", "components": 3, "gamma": {"record": 9.0}}
    }


@given(st.lists(st.integers(1, 9), min_size=1, max_size=4), st.integers(1, 200))
def test_thin_axes_any_axes_at_most_so_many(lengths: list[int], most: int):
    axes = {str(i): [{"x": j} for j in range(length)] for i, length in enumerate(lengths)}
    product = 1
    for values in thin_axes(axes, most).values():
        assert len(values) >= 1
        product *= len(values)
    assert product <= most


def test_thin_axes_first_values_stay():
    axes = {"a": [{"x": 0}, {"x": 1}, {"x": 2}], "b": [{"y": 0}, {"y": 1}]}
    assert thin_axes(axes, 2) == {"a": [{"x": 0}], "b": [{"y": 0}, {"y": 1}]}


@pytest.mark.parametrize("most", [4, 12, 24])
def test_list_settings_few_the_limit_on_gamma_and_few_components_are_tried(most: int):
    scope = SweepScope(numeric=20, categorical=0, gamma=1100.0)
    found = list_settings(PRESENT, ["pca_laplace"], scope, most)[1:]
    tried = {(each.parameters["components"], each.parameters["gamma"]["record"]) for each in found}
    assert (1, 1100.0) in tried
    assert max(components for components, _ in tried) <= 5


@given(st.floats(1.001, 1e12))
def test_round_any_number_stays_on_its_side(value: float):
    assert value * 0.99 <= round_down(value) <= value * (1 + 1e-9)
    assert value * (1 - 1e-9) <= round_up(value) <= value * 1.01
