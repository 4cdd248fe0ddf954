from __future__ import annotations

import math
import re

import numpy as np
import pytest

from ppdm_core.model.errors import BadInput
from ppdm_core.sanitizers.pca_laplace import PcaLaplace
from tests.support.tables import fit_sanitizer, make_table, read_cells, run_sanitizer


def test_sanitize_too_little_noise_raises():
    for shape in ("isotropic", "per_component"):
        with pytest.raises(BadInput, match="'b' parameter of PcaLaplace must be above 1/120"):
            PcaLaplace(components=2, b=1 / 120, noise_shape=shape)
    PcaLaplace(components=2, b=1 / 120, scale="zscore")  # scores may range over less than 1
    # A score of five columns ranges over more than one of them.
    with pytest.raises(BadInput, match=r"cannot come from all inputs\. Raise 'b' to \d.* times"):
        run_sanitizer(PcaLaplace(components=2, b=0.01), make_table())
    with pytest.raises(BadInput, match=r"cannot come from all inputs\. Lower 'gamma'\.$"):
        run_sanitizer(PcaLaplace(components=2, gamma={"record": 1e200}), make_table())


def test_sanitize_b_raised_as_proposed_succeeds():
    with pytest.raises(BadInput) as caught:
        run_sanitizer(PcaLaplace(components=2, b=0.01), make_table())
    message = re.search(r"to (\S+) times", str(caught.value))
    assert message
    enough = 0.01 * float(message[1])
    assert np.isfinite(
        read_cells(run_sanitizer(PcaLaplace(components=2, b=enough), make_table()).rows)
    ).all()
    with pytest.raises(BadInput, match="cannot come from all inputs"):
        run_sanitizer(PcaLaplace(components=2, b=enough / 1.2), make_table())


def test_sanitize_basis_with_other_columns_raises():
    fitted = fit_sanitizer(PcaLaplace(components=2, b=0.3), make_table(60))
    other = {
        **fitted,
        "scaling": fit_sanitizer(PcaLaplace(components=2, b=0.3), make_table(60, 4))["scaling"],
    }
    with pytest.raises(BadInput, match="The basis has 5 columns, the table 4"):
        run_sanitizer(PcaLaplace(components=2, b=0.3), make_table(60, 4), fitted=other)


def test_learns_each_basis_and_scale():
    assert PcaLaplace(b=1, basis="private").learns
    assert PcaLaplace(b=1).learns
    assert not PcaLaplace(b=1, basis="file", basis_file="x").learns
    assert PcaLaplace(b=1).set_aside == 0.2
    assert PcaLaplace(b=1, basis="private").set_aside == 0.0
    assert PcaLaplace(b=1, basis="file", basis_file="x", scale="zscore").learns


@pytest.mark.parametrize(
    ("parameters", "words"),
    [
        ({"b": 0}, "The 'b' parameter of PcaLaplace must be a positive number. Got 0."),
        ({"b": "x"}, "The 'b' parameter of PcaLaplace must be a positive number. Got 'x'."),
        ({"b": math.inf}, "The 'b' parameter of PcaLaplace must be a positive number. Got inf."),
        ({"b": True}, "must be a positive number. Got True."),
        ({}, "The 'b' parameter of PcaLaplace must be given, or else 'gamma', but not both."),
        ({"b": 1, "gamma": {"record": 9}}, "must be given, or else 'gamma', but not both."),
        ({"gamma": {"record": 1}}, "The 'gamma' parameter of PcaLaplace must be above 1"),
        ({"gamma": {"family": 9}}, "must be a table such as { record = 1000 }"),
        ({"gamma": {}}, "The 'gamma' parameter of PcaLaplace must be above 1"),
        ({"gamma": {"record": "many"}}, "The 'gamma' parameter of PcaLaplace must be"),
        ({"gamma": {"record": math.nan}}, "The 'gamma' parameter of PcaLaplace must be above 1"),
        ({"gamma": 1000}, "must be a table such as { record = 1000 }"),
        ({"b": 1, "components": 0}, "must be a count of at least 1, a share between 0 and 1"),
        ({"b": 1, "components": 1.5}, "The 'components' parameter of PcaLaplace must be"),
        ({"b": 1, "components": True}, "The 'components' parameter of PcaLaplace must be"),
        ({"b": 1, "components": "all"}, "The 'components' parameter of PcaLaplace must be"),
        ({"b": 1, "components": {"variance": 0}}, "The 'components' parameter of PcaLaplace"),
        ({"b": 1, "components": {"variance": "x"}}, "The 'components' parameter of PcaLaplace"),
        ({"b": 1, "components": {"var": 0.5}}, "The 'components' parameter of PcaLaplace must be"),
        ({"b": 1, "noise_shape": "round"}, "must be one of isotropic, per_component. Got 'round'."),
        ({"b": 1, "basis": "mine"}, "must be one of sample, file, private. Got 'mine'."),
        ({"b": 1, "space": "time"}, "must be one of components, original. Got 'time'."),
        ({"b": 1, "scale": "log"}, "must be one of minmax, zscore, none. Got 'log'."),
        ({"b": 1, "law": "normal"}, "must be one of laplace, logistic, student_t. Got 'normal'."),
        ({"b": 1, "law": "student_t"}, "The 'nu' parameter of PcaLaplace must be a number exactly"),
        ({"b": 1, "basis_share": 1.0}, "a share above 0 and below 1. Got 1.0."),
        ({"b": 1, "basis": "file"}, "The 'basis_file' parameter of PcaLaplace must be a path"),
        ({"b": 1, "basis_file": "x"}, "The 'basis_file' parameter of PcaLaplace must be a path"),
        ({"b": 1, "score_ranges": [[0, 1]]}, "must be left out unless noise_shape"),
        ({"b": 1, "bb": 2}, "'bb' is not a parameter of method 'pca_laplace'. Did you mean 'b'?"),
    ],
)
def test_parameters_invalid_raise_with_name(parameters, words):
    with pytest.raises(BadInput) as caught:
        PcaLaplace.from_parameters(parameters)
    assert words in str(caught.value)
    assert caught.value.exit_code == 2


@pytest.mark.parametrize(
    "ranges", [[[0, 1]], [[0, 1], [1, 0]], [[0, 1], [2]], [["a", "b"]], [[0, math.inf]], 7]
)
def test_score_ranges_invalid_raise_with_name(ranges):
    parameters = {"components": 2, "b": 0.3, "noise_shape": "per_component"}
    with pytest.raises(BadInput, match="The 'score_ranges' parameter of PcaLaplace must be"):
        run_sanitizer(PcaLaplace(**parameters, score_ranges=ranges), make_table())
