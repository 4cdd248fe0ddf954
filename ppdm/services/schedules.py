"""The runner of `ppdm serve`: ``python -m ppdm.services.schedules PARENT FILE...``.

SIGINT stops it and pauses its schedules. The death of its parent kills it at once.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import threading
import time
from pathlib import Path

# An early Ctrl-C waits until the event loop can handle it.
signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})


async def main(paths: list[str]) -> None:
    """Serve the deployments of the release files until SIGINT."""
    from prefect.runner import Runner

    from flows.config.release_file import load
    from ppdm.services.deploy import POLL_SECONDS, build_deployment

    interrupted = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGINT, interrupted.set)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    runner = Runner(name="ppdm", query_seconds=POLL_SECONDS, pause_on_shutdown=True)
    for path in paths:
        await runner.aadd_deployment(build_deployment(Path(path).stem, load(path)))
    print("serving; Ctrl-C ends it", file=sys.stderr, flush=True)
    serving = asyncio.create_task(runner.start())
    stop = asyncio.create_task(interrupted.wait())
    await asyncio.wait({serving, stop}, return_when=asyncio.FIRST_COMPLETED)
    while not runner.started and not serving.done():
        await asyncio.sleep(0.05)
    if not serving.done():
        await runner.astop()
    await serving


def exit_when_parent_ends(parent: int) -> None:
    """Kill this process group when the parent is gone: a killed parent cannot end the releases."""
    while os.getppid() == parent:
        time.sleep(1.0)
    os.killpg(os.getpid(), signal.SIGKILL)


if __name__ == "__main__":
    threading.Thread(target=exit_when_parent_ends, args=(int(sys.argv[1]),), daemon=True).start()
    asyncio.run(main(sys.argv[2:]))
