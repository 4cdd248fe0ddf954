"""Releases of a table as processes of their own, up to the verdict."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path

from tests.support.entries import kill_at, make_known
from tests.support.stewards import Steward, limits, numbers

ROOM = 3  # releases that the limit has room for


def changing(args: list[str]) -> None:
    """Releases the table with a value of its own in one record: folder, value, where to die."""
    folder, value, point = args
    make_known()
    if point:
        kill_at(point)
    steward = Steward(Path(folder), numbers(), file=f"{value}.csv")
    steward.rows["p3"] = (float(value), 0.5)
    # Laplace noise of scale 1/2 on two columns of width 1: e^4 each time, and a bit for the grid.
    policy = replace(steward.policy, limits=limits(product=math.exp(4.1 * ROOM)))
    entry = steward.release(policy=policy)
    print(json.dumps([entry["kind"], entry["records"]]))
