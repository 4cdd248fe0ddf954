"""The runner of `ppdm serve`: ``python -m ppdm.services.schedules PARENT FILE...``.

SIGINT ends it, with its schedules paused; so does, at once, the death of its parent.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import threading
import time
from pathlib import Path

# Until the loop can handle it, an early Ctrl-C waits.
signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})


async def main(paths: list[str]) -> None:
    from prefect.runner import Runner

    from flows.config.release_file import load
    from ppdm.services.deploy import POLL_EVERY, deployment_of

    asked = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGINT, asked.set)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    runner = Runner(name="ppdm", query_seconds=POLL_EVERY, pause_on_shutdown=True)
    for path in paths:
        await runner.aadd_deployment(deployment_of(Path(path).stem, load(path)))
    print("serving; Ctrl-C ends it", file=sys.stderr, flush=True)
    serving = asyncio.create_task(runner.start())
    stop = asyncio.create_task(asked.wait())
    await asyncio.wait({serving, stop}, return_when=asyncio.FIRST_COMPLETED)
    while not runner.started and not serving.done():
        await asyncio.sleep(0.05)
    if not serving.done():
        await runner.astop()
    await serving


def end_with(parent: int) -> None:
    """A parent that was killed cannot end the releases that run here."""
    while os.getppid() == parent:
        time.sleep(1.0)
    os.killpg(os.getpid(), signal.SIGKILL)


if __name__ == "__main__":
    threading.Thread(target=end_with, args=(int(sys.argv[1]),), daemon=True).start()
    asyncio.run(main(sys.argv[2:]))
