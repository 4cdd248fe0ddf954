"""The runner of `ppdm serve`: ``python -m flows.serve_process FILE...``. SIGINT ends it."""

from __future__ import annotations

import asyncio
import signal
import sys
from pathlib import Path

from flows.config import load
from flows.deploy import POLL_EVERY, deployment_of


async def main(paths: list[str]) -> None:
    from prefect.runner import Runner

    runner = Runner(name="ppdm", query_seconds=POLL_EVERY, pause_on_shutdown=True)
    for path in paths:
        await runner.aadd_deployment(deployment_of(Path(path).stem, load(path)))
    loop = asyncio.get_running_loop()
    stopping: list[asyncio.Task[None]] = []  # the loop itself keeps no reference
    loop.add_signal_handler(
        signal.SIGINT, lambda: stopping.append(loop.create_task(runner.astop()))
    )
    print("serving; Ctrl-C ends it", file=sys.stderr, flush=True)
    await runner.start()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1:]))
