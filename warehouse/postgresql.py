"""Connections to PostgreSQL, and what its errors mean; the server's own messages quote values."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl, quote, urlsplit

from ppdm_core.model.errors import BadInput, Defect, MachineTrouble, PpdmError
from warehouse.credentials import LOCAL_HOSTS, check_url, read_credentials

if TYPE_CHECKING:
    from adbc_driver_manager.dbapi import Cursor

SCHEMES = ("postgresql", "postgres")
SSL_MODE, SSL_MODES = "sslmode", ("require", "verify-ca", "verify-full")
PARAMETERS = frozenset(
    {SSL_MODE, "sslrootcert", "sslcert", "sslkey", "application_name", "target_session_attrs"}
)
PORT = 5432
CONNECT_SECONDS = 10
NO_RIGHT = "42501"
MISSING = ("42P01", "3F000", "3D000", "42704")  # table, schema, database, role
EXISTING = ("42P07", "23505")  # table, row with the same key
# Classes of SQLSTATE: connection, resources, intervention of an operator, system, internal.
TROUBLE = ("08", "53", "57", "58", "XX")


def check_server_options(options: Mapping[str, str]) -> None:
    """Check the URL of a server: host and database, no password, and TLS to another machine."""
    check_url(options["url"], SCHEMES, "url", PARAMETERS)
    parts = urlsplit(options["url"])
    if not parts.path.strip("/"):
        raise BadInput("The URL in 'url' names no database.", remedy="Add it: .../DATABASE")
    modes = [value for name, value in parse_qsl(parts.query) if name == SSL_MODE]
    if not _is_local(parts.hostname) and modes not in ([mode] for mode in SSL_MODES):
        raise BadInput(
            "The server in 'url' is another machine, and the URL does not ask for TLS: rows would "
            "travel unencrypted.",
            remedy=f"Add ?{SSL_MODE}={SSL_MODES[-1]} to the URL (or {', '.join(SSL_MODES[:-1])}).",
        )


def _is_local(host: str | None) -> bool:
    """Return whether a server is on the same machine; libpq reads the environment, too."""
    host = os.environ.get("PGHOSTADDR") or host or os.environ.get("PGHOST", "")
    return not host or host.startswith(("/", "@")) or host in LOCAL_HOSTS


def describe_server(url: str) -> str:
    """Return host and database of a URL, for messages."""
    parts = urlsplit(url)
    return f"{parts.hostname or 'the local server'}{parts.path}"


@contextmanager
def connect(options: Mapping[str, str]) -> Iterator[Cursor]:
    """Open a connection on which each statement is a transaction, unless it begins one.

    The password comes from the credentials file, or from where libpq looks for one: PGPASSWORD,
    or a password file that only its owner can read.
    """
    import adbc_driver_manager
    import adbc_driver_postgresql.dbapi as driver

    url, password = options["url"], ""
    if "credentials" in options:
        password = read_credentials(options["credentials"], ("password",))["password"]
    check_reachable(url)
    sign = "&" if urlsplit(url).query else "?"
    address = f"{url}{sign}connect_timeout={CONNECT_SECONDS}"
    if password:
        address += f"&password={quote(password, safe='')}"
    try:
        connection = driver.connect(address, autocommit=True)
    except adbc_driver_manager.Error:
        raise BadInput(
            f"The server {describe_server(url)} refuses the login.",
            remedy="Check user and database in 'url', and the password in PGPASSWORD or in the "
            "file that 'credentials' names.",
        ) from None
    with closing(connection), closing(connection.cursor()) as cursor:
        yield cursor


def check_reachable(url: str) -> None:
    """Check that a server listens: the driver reports a wrong password as the same error."""
    parts = urlsplit(url)
    if not parts.hostname:  # a socket in the file system
        return
    try:
        socket.create_connection((parts.hostname, parts.port or PORT), CONNECT_SECONDS).close()
    except OSError:
        raise BadInput(
            f"The server {describe_server(url)} cannot be reached.",
            remedy="Check host and port in 'url', and the network.",
        ) from None


@contextmanager
def translate_errors(options: Mapping[str, str], doing: str) -> Iterator[None]:
    """Turn errors of the server into one sentence; ``doing`` names what failed."""
    import adbc_driver_manager

    try:
        yield
    except (adbc_driver_manager.Error, OSError) as error:
        state = getattr(error, "sqlstate", None)
        raise describe_error(options, doing, state, type(error).__name__) from None


def describe_error(
    options: Mapping[str, str], doing: str, state: str | None, name: str
) -> PpdmError:
    """Return the error for a state of SQL; None: the connection was lost."""
    server = describe_server(options["url"])
    if state is None or state.startswith(TROUBLE):
        return MachineTrouble(
            f"{doing} failed: the server {server} is gone, or out of space.",
            remedy="Try again when it answers; what is complete is kept.",
        )
    if state == NO_RIGHT:
        return BadInput(
            f"{doing} failed: the user has no right to do that on {server}.",
            remedy="Ask the administrator of the database for the right.",
        )
    if state in MISSING:
        return BadInput(
            f"{doing} failed: a table, schema or role does not exist on {server}.",
            remedy="Check the names in the release file.",
        )
    if state in EXISTING:
        return BadInput(
            f"{doing} failed: a table of this version exists already on {server}.",
            remedy="Rename or drop it, or name another schema.",
        )
    if "query" in options:
        return BadInput(
            f"{doing} failed: the server does not accept the query (SQLSTATE {state}).",
            remedy="Try the query file with psql.",
        )
    return Defect(f"{doing} failed ({name}, SQLSTATE {state}).")


def fetch(cursor: Cursor, query: str) -> list[tuple[Any, ...]]:
    """Return all rows of a query."""
    cursor.execute(query)
    return cursor.fetchall()
