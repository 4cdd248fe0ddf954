from __future__ import annotations

import errno
import gc
import pickle
import traceback
import weakref

import duckdb
import httpx
import pytest

from ppdm_core.model.errors import BadInput, Defect, MachineTrouble, PpdmError
from tasks.redaction import Redaction, redact_errors

CANARY = "canary-4711"


@redact_errors
def choke() -> None:
    duckdb.sql(f"select '{CANARY}'::integer").fetchall()


def text_of(error: BaseException) -> str:
    return "".join(traceback.format_exception(error)) + repr(pickle.dumps(error))


def test_redaction_library_error_hides_values() -> None:
    with pytest.raises(Defect) as caught:
        choke()
    assert CANARY not in text_of(caught.value)
    assert caught.value.__context__ is None  # distributed pickles errors with their context
    assert "ConversionException" in str(caught.value)
    assert caught.value.exit_code == 1


def test_redaction_place_is_line_of_own_code() -> None:
    with pytest.raises(Defect, match=r"tests/tasks/test_redaction\.py:\d+"):
        choke()


def test_redaction_own_errors_pass() -> None:
    given = BadInput("A sentence.", file="a.csv", column="x", remedy="Do that.")
    with pytest.raises(BadInput) as caught, Redaction():
        raise given
    assert caught.value is given


@pytest.mark.extended
def test_redaction_clears_frames() -> None:
    class Rows:
        pass

    held: list[weakref.ref[Rows]] = []

    def work() -> None:
        rows = Rows()
        held.append(weakref.ref(rows))
        try:
            raise ValueError(CANARY)
        except ValueError:
            raise BadInput("A sentence.") from None

    with pytest.raises(BadInput) as caught, Redaction():
        work()
    gc.collect()
    assert held[0]() is None
    assert caught.value.__context__ is None


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EROFS, errno.EACCES])
def test_redaction_disk_error_machine_trouble(code: int) -> None:
    with pytest.raises(MachineTrouble) as caught, Redaction():
        raise OSError(code, CANARY)
    assert caught.value.exit_code == 5
    assert CANARY not in str(caught.value)


def test_redaction_network_error_machine_trouble() -> None:
    with pytest.raises(MachineTrouble, match="stopped answering"), Redaction():
        raise httpx.ConnectError(CANARY)


def test_redaction_interrupt_passes() -> None:
    with pytest.raises(KeyboardInterrupt), Redaction():
        raise KeyboardInterrupt


def test_errors_pickled_equal() -> None:
    error = BadInput("A sentence.", file="a.csv", column="x", remedy="Do that.")
    copy = pickle.loads(pickle.dumps(error))
    assert isinstance(copy, PpdmError)
    assert copy.as_dict() == error.as_dict()
