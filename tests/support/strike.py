"""A release that is killed before a given line of its code, from verdict to publication."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
OURS = tuple(
    str(ROOT / name) + os.sep for name in ("ppdm_core", "warehouse", "tasks", "flows", "ppdm")
)
NEVER = "0"


def struck(args: list[str]) -> None:
    """Judge and publish an audited release; be killed before the line that is the first argument,
    counted from 1 in the order in which lines are first run. 0: not killed, print all lines."""
    from ppdm.cli.release_files import read_release_file
    from tasks.dataset_lock import hold_dataset
    from tasks.ingest import task as ingest
    from tasks.judge import task as gate
    from tasks.publish import task as publish
    from tests.support.entries import make_known

    make_known()
    context = read_release_file(Path(args[-1]))[1]
    with hold_dataset(context):
        release_id = ingest.begin_release.fn(context)
        with watched(int(args[0])) as lines:
            gate.judge.fn(context, release_id)
            publish.publish_candidate.fn(context, release_id, False)
    print("\n".join(f"{Path(file).relative_to(ROOT)}:{line}" for file, line in lines))


@contextmanager
def watched(deadly: int) -> Iterator[dict[tuple[str, int], None]]:
    met: dict[tuple[str, int], None] = {}

    def on_line(frame: FrameType, event: str, argument: Any) -> Any:
        if event == "line":
            met[frame.f_code.co_filename, frame.f_lineno] = None
            if len(met) == deadly:
                os.kill(os.getpid(), signal.SIGKILL)
        return on_line

    def on_call(frame: FrameType, event: str, argument: Any) -> Any:
        return on_line if frame.f_code.co_filename.startswith(OURS) else None

    sys.settrace(on_call)
    try:
        yield met
    finally:
        sys.settrace(None)
