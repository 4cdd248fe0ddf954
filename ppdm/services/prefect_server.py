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
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path

from ppdm.services.prefect_process import spawn_prefect
from ppdm.services.processes import ServerProcess, read_record
from ppdm_core.model.errors import MachineTrouble
from tasks.environment import bypass_proxies, set_library_defaults
from warehouse.home import Home
from warehouse.locks import CHECK_HOME, hold, locks_folder

LogMessage = Callable[[str], None]

START_LIMIT_SECONDS = 180.0  # the first start on a home also creates the database
WAIT_MESSAGE_SECONDS = 10.0  # between messages while a server starts
HEALTH_CHECK_SECONDS = 0.1
LOCK_LIMIT_SECONDS = 60.0
LOG = Path("private", "server.log")
PREFECT_QUEUES = {
    "prefect.logging.handlers": "APILogWorker",
    "prefect.events.worker": "EventsWorker",
}


@dataclass(frozen=True)
class SharedServer:
    """A server that several commands use."""

    process: ServerProcess
    users: int  # descriptor of the lock that this user holds


class ServerHandle:
    """One use of a server. ``close`` releases it, and the last user stops the server."""

    def __init__(
        self, home: Path, log_message: LogMessage, url: str, shared: SharedServer | None
    ) -> None:
        self.url = url
        self._home = home
        self._log_message = log_message
        self._shared = shared
        self._given = os.environ.get("PREFECT_API_URL")
        _set_api_url(url)

    def wait(self) -> str:
        """Return the API address as soon as the server responds."""
        if self._shared is None:
            _check_reachable(self.url)
        else:
            log = self._home / LOG
            wait_for_health(self._shared.process, "Prefect", log, self._log_message)
        return self.url

    def close(self) -> None:
        """Release the server; stop it if there is no other user."""
        shared, self._shared = self._shared, None
        if shared is None:
            _set_api_url(self._given)
            return
        try:
            _flush_prefect_queues()
            _set_api_url(self._given)
            with lock_server_start(self._home, self._log_message):
                stop_if_unused(self._home, shared.users)
        finally:
            os.close(shared.users)


def acquire_server(home: Path, log_message: LogMessage) -> ServerHandle:
    """Find or start the server and return at once; prefect may be imported from here on."""
    home = home.absolute()
    set_library_defaults(home)
    given = os.environ.get("PREFECT_API_URL")
    if given:
        return ServerHandle(home, log_message, given.rstrip("/"), None)
    bypass_proxies()
    with lock_server_start(home, log_message):
        users = open_users_lock(home)
        try:
            fcntl.flock(users, fcntl.LOCK_SH)  # waits only for an abandoned server to end
            process = find_lasting_server(home) or read_record(_record_path(home))
            if process is None or not process.is_alive:
                process = _spawn_shared_server(home)
        except OSError as error:
            os.close(users)
            raise MachineTrouble(
                f"The local Prefect server cannot be started: {error.strerror}.", remedy=CHECK_HOME
            ) from None
    return ServerHandle(home, log_message, f"{process.address}/api", SharedServer(process, users))


@contextmanager
def use_prefect_server(
    home: Path, log_message: LogMessage, meanwhile: Callable[[], None] | None = None
) -> Iterator[str]:
    """Yield the address of a server that responds; ``meanwhile`` runs while it starts."""
    handle = acquire_server(home, log_message)
    try:
        if meanwhile is not None:
            meanwhile()
        yield handle.wait()
    finally:
        handle.close()


def stop_orphaned_server(home: Path) -> None:
    """Stop a server whose users were all killed. Cheap when there is none."""
    if not _record_path(home).exists():
        return
    with lock_server_start(home, lambda text: None):
        users = open_users_lock(home)
        try:
            stop_if_unused(home, users)
        finally:
            os.close(users)


def find_lasting_server(home: Path) -> ServerProcess | None:
    """Return the server that `ppdm up` started, or None if it is not alive."""
    process = read_record(Home(home).up_record("prefect"))
    return process if process is not None and process.is_alive else None


def _record_path(home: Path) -> Path:
    return home / "private" / "server.json"


def lock_server_start(home: Path, log_message: LogMessage) -> AbstractContextManager[None]:
    """Hold the lock that guards each decision to start, join or stop a server."""
    lock = locks_folder(home) / "server.start"
    return hold(lock, holder="a command", limit=LOCK_LIMIT_SECONDS, say=log_message)


def _users_lock_path(home: Path) -> Path:
    return home / "private" / "locks" / "server.users"


def open_users_lock(home: Path) -> int:
    """Return a descriptor of the lock file that every user of the server holds."""
    return os.open(_users_lock_path(home), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)


def _spawn_shared_server(home: Path) -> ServerProcess:
    return spawn_prefect(
        record=_record_path(home),
        users=_users_lock_path(home),
        log=home / LOG,
        prefect_home=home / "views" / "prefect",
    )


def stop_if_unused(home: Path, users: int) -> bool:
    """Stop the shared server if it has no other user; return whether it has none."""
    try:
        fcntl.flock(users, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    process = read_record(_record_path(home))
    if process is not None:
        process.stop()
    _record_path(home).unlink(missing_ok=True)
    return True


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


def wait_for_health(process: ServerProcess, name: str, log: Path, log_message: LogMessage) -> None:
    """Wait until a server responds; raise MachineTrouble if it ends or takes too long.

    A request to a server that listens already waits in its queue; else it is repeated.
    """
    start = time.monotonic()
    timeout = 1.0
    last_message = start - WAIT_MESSAGE_SECONDS + timeout
    while not process.is_healthy(timeout):
        now = time.monotonic()
        if now - start > START_LIMIT_SECONDS or not process.is_alive:
            what = "did not respond in time" if process.is_alive else "ended while it started"
            raise MachineTrouble(
                f"The local {name} server {what}.",
                remedy=f"See {log}, then run the same command again.",
            )
        if now - last_message >= WAIT_MESSAGE_SECONDS:
            log_message(f"Waiting for the local {name} server ({now - start:.0f} s).")
            last_message, timeout = now, WAIT_MESSAGE_SECONDS
        time.sleep(HEALTH_CHECK_SECONDS)


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
