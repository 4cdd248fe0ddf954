"""Which Prefect server a command uses: PREFECT_API_URL, the one that `ppdm up` started, or else a
server that all commands on a home share and that ends with the last of them.

Every user of a home's server holds ``server.users`` in shared mode; a process that gets it
exclusively knows that there is no other user. ``server.start`` guards each decision to start, join
or stop. The server watches ``server.users`` itself and exits when all its users were killed.
"""

from __future__ import annotations

import fcntl
import http.client
import os
import sys
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

from ppdm.services import prefect_process
from ppdm.services.processes import (
    LogMessage,
    ServerProcess,
    read_record,
    spawn_server,
    wait_for_health,
)
from ppdm_core.model.errors import MachineTrouble
from tasks.environment import bypass_proxies, set_library_defaults
from warehouse.home import Home
from warehouse.locks import CHECK_HOME, hold, locks_folder, open_lock

LOCK_LIMIT_SECONDS = 60.0
LOG = Path("private", "server.log")
RECORD = Path("private", "server.json")
PREFECT_QUEUES = {
    "prefect.logging.handlers": "APILogWorker",
    "prefect.events.worker": "EventsWorker",
}


class ServerHandle:
    """One use of a server. ``close`` releases it, and the last user stops a shared server."""

    def __init__(self, home: Path, log_message: LogMessage) -> None:
        """Find or start the server and return at once; prefect may be imported from here on."""
        self._home = home.absolute()
        self._log_message = log_message
        self._given = os.environ.get("PREFECT_API_URL")
        self._joined: tuple[ServerProcess, int] | None = None
        set_library_defaults(self._home)
        if self._given:
            self.url = self._given.rstrip("/")
        else:
            bypass_proxies()
            self._joined = _join_server(self._home, log_message)
            self.url = f"{self._joined[0].address}/api"
        _set_api_url(self.url)

    def wait(self) -> str:
        """Return the API address as soon as the server responds."""
        if self._joined is None:
            _check_reachable(self.url)
        else:
            wait_for_health(self._joined[0], "Prefect", self._home / LOG, self._log_message)
        return self.url

    def close(self) -> None:
        """Release the server; stop it if there is no other user."""
        joined, self._joined = self._joined, None
        if joined is not None:
            _flush_prefect_queues()
        _set_api_url(self._given)
        if joined is not None:
            os.close(joined[1])
            with lock_server_start(self._home, self._log_message):
                stop_if_unused(self._home)


@contextmanager
def use_prefect_server(
    home: Path, log_message: LogMessage, meanwhile: Callable[[], None] | None = None
) -> Iterator[str]:
    """Yield the address of a server that responds; ``meanwhile`` runs while it starts."""
    handle = ServerHandle(home, log_message)
    try:
        if meanwhile is not None:
            meanwhile()
        yield handle.wait()
    finally:
        handle.close()


def _join_server(home: Path, log_message: LogMessage) -> tuple[ServerProcess, int]:
    """Return a server of the home, and the descriptor of its users' lock in shared mode."""
    with lock_server_start(home, log_message):
        users = open_users_lock(home)
        try:
            fcntl.flock(users, fcntl.LOCK_SH)  # waits only for an abandoned server to end
            process = find_lasting_server(home) or read_record(home / RECORD)
            if process is None or not process.is_alive:
                process = spawn_server(
                    prefect_process.MODULE,
                    [str(home), "shared"],
                    port=0,
                    health=prefect_process.HEALTH_PATH,
                    record=home / RECORD,
                    log=home / LOG,
                )
        except OSError as error:
            os.close(users)
            raise MachineTrouble(
                f"The local Prefect server cannot be started: {error.strerror}.", remedy=CHECK_HOME
            ) from None
    return process, users


def stop_if_unused(home: Path) -> bool:
    """Stop the shared server if it has no user; return whether it has none.

    The caller holds the lock of the start.
    """
    users = open_users_lock(home)
    try:
        fcntl.flock(users, fcntl.LOCK_EX | fcntl.LOCK_NB)
        process = read_record(home / RECORD)
        if process is not None:
            process.stop()
        (home / RECORD).unlink(missing_ok=True)
    except BlockingIOError:
        return False
    finally:
        os.close(users)
    return True


def stop_orphaned_server(home: Path) -> None:
    """Stop a server whose users were all killed. Cheap when there is none."""
    if (home / RECORD).exists():
        with lock_server_start(home, lambda text: None):
            stop_if_unused(home)


def find_lasting_server(home: Path) -> ServerProcess | None:
    """Return the server that `ppdm up` started, or None if it is not alive."""
    process = read_record(Home(home).up_record("prefect"))
    return process if process is not None and process.is_alive else None


def lock_server_start(home: Path, log_message: LogMessage) -> AbstractContextManager[None]:
    """Hold the lock that guards each decision to start, join or stop a server."""
    lock = locks_folder(home) / "server.start"
    return hold(lock, holder="a command", limit=LOCK_LIMIT_SECONDS, say=log_message)


def open_users_lock(home: Path) -> int:
    """Return a descriptor of the lock file that every user of the server holds."""
    return open_lock(Home(home).locks / "server.users")


def _set_api_url(url: str | None) -> None:
    if url == os.environ.get("PREFECT_API_URL"):
        return
    if url is None:
        os.environ.pop("PREFECT_API_URL", None)
    else:
        os.environ["PREFECT_API_URL"] = url
    # Prefect reads its settings once, when it is imported.
    context = sys.modules.get("prefect.context")
    if context is not None:
        context.refresh_global_settings_context()


def _flush_prefect_queues() -> None:
    """Send the logs and task states that Prefect queues; they would be lost with the server."""
    for module, worker in PREFECT_QUEUES.items():
        if module in sys.modules:
            getattr(sys.modules[module], worker).drain_all(timeout=5)


def _check_reachable(url: str) -> None:
    problem = _find_connection_problem(url)
    if problem is not None:
        raise MachineTrouble(
            f"The Prefect server of PREFECT_API_URL does not respond ({problem}).",
            remedy="Start it, correct the address, or unset the variable to use a local server.",
        )


def is_reachable(url: str) -> bool:
    """Return whether a Prefect API responds at the address."""
    return _find_connection_problem(url) is None


def _find_connection_problem(url: str) -> str | None:
    """Return why the server cannot be used, or None if it responds."""
    try:
        with urllib.request.urlopen(f"{url}/health", timeout=10) as response:
            is_api = response.read(16).strip() == b"true"
            return None if is_api else "it is no API; does the address end in /api?"
    except urllib.error.HTTPError as error:
        error.close()
        # It responds; whether the user has access is checked by Prefect later.
        return None if error.code < 500 else f"status {error.code}"
    except (OSError, ValueError, http.client.HTTPException) as error:
        return type(error).__name__
