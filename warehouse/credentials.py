"""Passwords and keys of databases and buckets.

They come from the environment or from a file that only its owner can read, are handed to the
client library at once, and are stored nowhere: not in the release file, a log, an event, a
manifest or an error.
"""

from __future__ import annotations

import os
import stat
import tomllib
from urllib.parse import parse_qsl, unquote, urlsplit

from ppdm_core.model.errors import BadInput

SECRET_PARAMETERS = {
    *("password", "sslpassword", "passfile", "oauth_client_secret"),
    *("access_key_id", "secret_access_key", "session_token"),
}
LOCAL_HOSTS = ("localhost", "127.0.0.1", "::1")


def check_url(
    url: str, schemes: tuple[str, ...], key: str, parameters: frozenset[str] = frozenset()
) -> None:
    """Check the form of a URL, and that it holds no password; the message does not show it.

    ``parameters`` are those that may follow a question mark.
    """
    given: set[str] = set()
    try:
        parts = urlsplit(url)
        given = {name for name, _ in parse_qsl(parts.query, keep_blank_values=True)}
        if has_secret(url):
            raise BadInput(
                f"The URL in '{key}' contains a password.",
                remedy="Remove it, change that password, and give the new one in the environment "
                "or in the file that 'credentials' names.",
            )
        host = parts.netloc.rpartition("@")[2]
        is_host = parts.port != 0 and bool(parts.netloc) and "%" not in host
        is_url = is_host and parts.scheme in schemes and not parts.fragment
    except ValueError:  # of a port that is no number, or brackets; its text quotes the URL
        is_url = False
    if not is_url:
        raise BadInput(
            f"The '{key}' key is not a URL that begins with {' or '.join(schemes)}://.",
            remedy=f"Correct '{key}'.",
        )
    if not given <= parameters:
        words = f"Only these may follow the '?': {', '.join(sorted(parameters))}."
        raise BadInput(
            f"The URL in '{key}' has a parameter that is not supported.",
            remedy=words if parameters else "Remove the '?' and what follows it.",
        )


def has_secret(url: str) -> bool:
    """Return whether a URL holds a password, or an '@' after its host.

    A password that is not escaped ends the host at the first of / ? #, so its '@' comes later.
    """
    parts = urlsplit(url)
    names = {name.lower() for name, _ in parse_qsl(parts.query, keep_blank_values=True)}
    user, _, _ = parts.netloc.rpartition("@")
    rest = url.partition("://")[2].removeprefix(parts.netloc)
    return ":" in unquote(user) or "@" in unquote(rest) or bool(names & SECRET_PARAMETERS)


def read_credentials(path: str, names: tuple[str, ...]) -> dict[str, str]:
    """Return the texts in a TOML file that only its owner can read; no message quotes the file."""
    name = os.path.basename(path)
    try:
        with open(path, "rb") as stream:
            status = os.fstat(stream.fileno())
            content = stream.read()
    except OSError as error:
        raise BadInput(
            f"The credentials file {name} cannot be read ({type(error).__name__}).",
            file=path,
            remedy="Check 'credentials' in the release file.",
        ) from None
    mode = stat.S_IMODE(status.st_mode)
    if mode & 0o077 or status.st_uid not in (os.geteuid(), 0):
        raise BadInput(
            f"The credentials file {name} can be read by others (mode {mode:o}).",
            file=path,
            remedy=f"Run: chmod 600 {name}. If others have seen it, change the password.",
        )
    try:
        found = tomllib.loads(content.decode())
    except (tomllib.TOMLDecodeError, UnicodeDecodeError):
        found = {}
    if not found or not set(found) <= set(names) or not all(map(_is_text, found.values())):
        raise BadInput(
            f"The credentials file {name} is not in the expected form.",
            file=path,
            remedy=f'Write one line KEY = "TEXT" for each of: {", ".join(names)}.',
        )
    return found


def _is_text(value: object) -> bool:
    return isinstance(value, str) and bool(value)
