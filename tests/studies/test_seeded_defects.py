from __future__ import annotations

from pathlib import Path

import pytest

from studies.seeded_defects import TABLE, Defect, occurs_once, read_defects, try_defect

ROOT = Path(__file__).resolve().parents[2]
CODE = "def double(x):\n    return 2 * x  # twice\n"
TEST = "from code_of_ours import double\n\n\ndef test_double():\n    assert double(2) == 4\n"


def make_defect(old: str, new: str) -> Defect:
    return Defect("a defect", "code_of_ours.py", old, new, "test_code.py", ("test_code.py",))


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "code_of_ours.py").write_text(CODE)
    (tmp_path / "test_code.py").write_text(TEST)
    return tmp_path


@pytest.mark.slow
@pytest.mark.parametrize(
    ("old", "new", "outcome", "test"),
    [
        ("2 * x", "3 * x", "caught", "test_code.py::test_double"),
        ("2 * x", "x * 2", "survived", ""),
        ("2 * x", "2 * y +", "tests do not run", ""),
        ("4 * x", "3 * x", "does not apply", ""),
        ("x", "y", "does not apply", ""),  # it occurs twice
    ],
)
def test_try_defect_each_outcome(
    old: str, new: str, outcome: str, test: str, project: Path
) -> None:
    result = try_defect(make_defect(old, new), project)
    assert (result.outcome, result.test) == (outcome, test)
    assert (project / "code_of_ours.py").read_text() == CODE


def test_read_defects_all_apply() -> None:
    assert [each.name for each in read_defects(TABLE) if not occurs_once(each, ROOT)] == []


def test_read_defects_tests_exist() -> None:
    defects = read_defects(TABLE)
    assert len(defects) >= 40
    for defect in defects:
        for path in (defect.first, *defect.tests):
            assert (ROOT / path).exists(), (defect.name, path)
