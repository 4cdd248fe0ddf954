"""Which Prefect server a command uses: PREFECT_API_URL, the one that `ppdm up` started, or else a
server that all commands on a home share and that ends with the last of them.

Every user of a home's server holds ``server.users`` in shared mode; who gets it exclusively
knows that nobody is left. ``server.start`` guards each decision to start, join or stop.
The server watches ``server.users`` itself and ends when all its users were killed.
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

from ppdm.services.prefect_process import spawn
from ppdm.services.processes import Running, read_record
from ppdm_core.model.errors import MachineTrouble
from tasks.environment import bypass_proxies, quiet_environment
from warehouse.home import Home
from warehouse.locks import CHECK_HOME, hold, locks_folder

Say = Callable[[str], None]

START_LIMIT = 180.0  # seconds; the first start on a home also makes the database
SAY_EVERY = 10.0
ASK_EVERY = 0.1
LOG = Path("private", "server.log")
LOCK_LIMIT = 60.0
PREFECT_QUEUES = {
    "prefect.logging.handlers": "APILogWorker",
    "prefect.events.worker": "EventsWorker",
}


@dataclass(frozen=True)
class Shared:
    running: Running
    users: int  # descriptor of the lock that this user holds


class Handle:
    """One use of a server. ``close`` gives it up, and the last user ends it."""

    def __init__(self, home: Path, say: Say, url: str, shared: Shared | None) -> None:
        self.url = url
        self._home = home
        self._say = say
        self._shared = shared
        self._given = os.environ.get("PREFECT_API_URL")
        _set_api_url(url)

    def wait(self) -> str:
        """Return the API address as soon as the server answers."""
        if self._shared is None:
            _check_reachable(self.url)
        else:
            wait_for_health(self._shared.running, "Prefect", self._home / LOG, self._say)
        return self.url

    def close(self) -> None:
        shared, self._shared = self._shared, None
        if shared is None:
            _set_api_url(self._given)
            return
        try:
            _send_what_prefect_holds()
            _set_api_url(self._given)
            with deciding(self._home, self._say):
                stop_if_unused(self._home, shared.users)
        finally:
            os.close(shared.users)


def start(home: Path, say: Say) -> Handle:
    """Find or start the server and return at once; prefect may be imported from here on."""
    home = home.absolute()
    quiet_environment(home)
    given = os.environ.get("PREFECT_API_URL")
    if given:
        return Handle(home, say, given.rstrip("/"), None)
    bypass_proxies()
    with deciding(home, say):
        users = open_users(home)
        try:
            fcntl.flock(users, fcntl.LOCK_SH)  # waits only for an abandoned server to end
            running = lasting_server(home) or read_record(_record(home))
            if running is None or not running.is_alive:
                running = _spawn(home)
        except OSError as error:
            os.close(users)
            raise MachineTrouble(
                f"The local Prefect server cannot be started: {error.strerror}.", remedy=CHECK_HOME
            ) from None
    return Handle(home, say, f"{running.address}/api", Shared(running, users))


@contextmanager
def prefect_server(
    home: Path, say: Say, meanwhile: Callable[[], None] | None = None
) -> Iterator[str]:
    """Yield the address of a server that answers; ``meanwhile`` runs while it starts."""
    handle = start(home, say)
    try:
        if meanwhile is not None:
            meanwhile()
        yield handle.wait()
    finally:
        handle.close()


def reap_orphans(home: Path) -> None:
    """End a server whose users were all killed. Cheap when there is none."""
    if not _record(home).exists():
        return
    with deciding(home, lambda text: None):
        users = open_users(home)
        try:
            stop_if_unused(home, users)
        finally:
            os.close(users)


def lasting_server(home: Path) -> Running | None:
    running = read_record(Home(home).up_record("prefect"))
    return running if running is not None and running.is_alive else None


def _record(home: Path) -> Path:
    return home / "private" / "server.json"


def deciding(home: Path, say: Say) -> AbstractContextManager[None]:
    lock = locks_folder(home) / "server.start"
    return hold(lock, holder="a command", limit=LOCK_LIMIT, say=say)


def _users(home: Path) -> Path:
    return home / "private" / "locks" / "server.users"


def open_users(home: Path) -> int:
    return os.open(_users(home), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)


def _spawn(home: Path) -> Running:
    return spawn(
        record=_record(home),
        users=_users(home),
        log=home / LOG,
        prefect_home=home / "views" / "prefect",
    )


def stop_if_unused(home: Path, users: int) -> bool:
    """End the shared server if nobody else uses it, and say whether nobody does."""
    try:
        fcntl.flock(users, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    running = read_record(_record(home))
    if running is not None:
        running.stop()
    _record(home).unlink(missing_ok=True)
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


def _send_what_prefect_holds() -> None:
    """Logs and task states travel in the background; late ones would be lost with the server."""
    for module, worker in PREFECT_QUEUES.items():
        if module in sys.modules:
            getattr(sys.modules[module], worker).drain_all(timeout=5)


def wait_for_health(running: Running, name: str, log: Path, say: Say) -> None:
    """A server that listens already is waited for in its queue; another one is asked again."""
    start = time.monotonic()
    patience = 1.0
    told = start - SAY_EVERY + patience
    while not running.answers(patience):
        now = time.monotonic()
        if now - start > START_LIMIT or not running.is_alive:
            what = "did not answer in time" if running.is_alive else "ended while it started"
            raise MachineTrouble(
                f"The local {name} server {what}.",
                remedy=f"See {log}, then run the same command again.",
            )
        if now - told >= SAY_EVERY:
            say(f"Waiting for the local {name} server ({now - start:.0f} s).")
            told, patience = now, SAY_EVERY
        time.sleep(ASK_EVERY)


def _check_reachable(url: str) -> None:
    trouble = _trouble_with(url)
    if trouble is not None:
        raise MachineTrouble(
            f"The Prefect server of PREFECT_API_URL does not answer ({trouble}).",
            remedy="Start it, correct the address, or unset the variable to use a local server.",
        )


def is_reachable(url: str) -> bool:
    return _trouble_with(url) is None


def _trouble_with(url: str) -> str | None:
    """Why the server does not answer; None if it does."""
    try:
        with urllib.request.urlopen(f"{url}/health", timeout=10) as answer:
            is_api = answer.read(16).strip() == b"true"
            return None if is_api else "it is no API; does the address end in /api?"
    except urllib.error.HTTPError as error:
        error.close()
        # It answers; whether we may use it, Prefect will say.
        return None if error.code < 500 else f"status {error.code}"
    except (OSError, ValueError, http.client.HTTPException) as error:
        return type(error).__name__
