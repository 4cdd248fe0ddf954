"""What the view of an attack contains, and what it does not."""

from __future__ import annotations

import numpy as np
import pytest

from ppdm_core.audit import simulation
from tests.contract.weak_releases import list_arrays
from tests.support.audit_cases import (
    LAPLACE,
    N,
    Spy,
    collect_views,
    draw_noisy,
    have_same_rows,
    make_auditor,
    make_truth,
)


def test_build_view_each_draw_shuffled_differently():
    X = make_truth().X
    one, two = collect_views(X, X)
    assert have_same_rows(one.Y, X)
    assert np.mean(np.all(one.Y == X, axis=1)) < 0.1
    assert np.mean(np.all(one.Y == two.Y, axis=1)) < 0.1
    labels = {bytes(x): label for x, label in zip(X, make_truth().label, strict=True)}
    assert [labels[bytes(y)] for y in one.Y] == one.label.tolist()


def test_build_view_known_records_with_own_rows():
    (view,) = collect_views(make_truth().X)
    assert view.known is not None
    assert len(view.known.rows) == 20
    assert np.array_equal(view.Y[view.known.rows], view.known.X)


def test_choose_participants_roles_disjoint():
    (view,) = collect_views(make_truth().X, goal="link")
    groups = [view.known.X, view.sample, view.targets.X]
    people = [set(map(bytes, group)) for group in groups]
    assert [len(group) for group in people] == [20, 8, N - 28]
    assert not (people[0] & people[1] or people[0] & people[2] or people[1] & people[2])


def test_build_view_arrays_read_only_copies():
    draws = draw_noisy(1)
    one = make_auditor(draws, public=LAPLACE)
    spy = Spy()
    one.run_trials(spy)
    held = list_arrays(spy.seen[0])
    assert set(held) >= {
        *("Y", "label", "known.X", "known.rows", "records", "sample", "partial_columns"),
        *("targets.X", "targets.C", "targets.label", "split_files.left", "split_files.right"),
        *("public.centre", "public.loadings", "public.scales"),
    }
    for name, array in held.items():
        assert not array.flags.writeable, name
        for secret in (one.truth.X, one.truth.label, draws, LAPLACE.loadings):
            assert not np.shares_memory(array, secret), name
        with pytest.raises(ValueError, match="read-only"):
            array[...] = 0


def test_run_trials_linkers_get_reconstructions_in_view_order():
    (view,) = collect_views(make_truth().X - 0.5, public=LAPLACE, goal="link")
    (X_hat,) = (X for name, X in view.reconstructions.items() if "transform_inverse/" in name)
    np.testing.assert_allclose(X_hat, view.Y + 0.5)
    assert {name.split("/")[0] for name in view.reconstructions} == {
        "transform_inverse",
        "shrinkage",
        "known_pairs",
    }
    assert collect_views(make_truth().X)[0].reconstructions == {}


def test_choose_participants_many_records_targets_capped(monkeypatch):
    monkeypatch.setattr(simulation, "MAX_TARGETS", 10)
    spy = Spy(goal="link", candidates={"none": np.full(10, -1)})
    make_auditor(make_truth().X).run_trials(spy)
    assert spy.seen[0].targets.n == 10
    assert len(spy.seen[0].Y) == N
