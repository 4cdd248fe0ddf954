"""The objects of a bucket that a source names, by name, prefix or pattern."""

from __future__ import annotations

import glob
import re
from collections.abc import Iterator, Mapping

from warehouse.buckets import (
    SCHEME,
    check_bucket_options,
    is_url,
    open_bucket,
    split_url,
    translate_bucket_errors,
)
from warehouse.columns import Source

__all__ = ["check_path", "is_url", "list_objects", "read_object"]

PIECE_BYTES = 2**20
TOKENS = re.compile(r"\*\*/|\*|\?|\[!?[^\]]+\]|.", re.DOTALL)
WILDCARDS = {"**/": "(?:[^/]+/)*", "*": "[^/]*", "?": "[^/]"}


def check_path(path: str, options: Mapping[str, str]) -> None:
    """Check the path of a source, and the options for it, if it is the URL of a bucket."""
    if is_url(path):
        check_bucket_options(path, options, "path")


def list_objects(source: Source, endings: tuple[str, ...]) -> list[tuple[str, str]]:
    """Return URL and relative name of every object of a source, sorted by name."""
    import obstore

    store = open_bucket(source.path, source.options)
    bucket, key = split_url(source.path)
    is_pattern, is_prefix = glob.has_magic(key), not key or key.endswith("/")
    with translate_bucket_errors(store, source.path):
        if not is_pattern and not is_prefix:
            obstore.head(store, key)
            return [(source.path, source.name)]
        prefix = _fixed_prefix(key) if is_pattern else key
        found = [each["path"] for page in obstore.list(store, prefix or None) for each in page]
    names = {each: each[len(prefix) :] for each in found}
    is_wanted = _compile(key).fullmatch if is_pattern else re.compile(".*").fullmatch
    return [
        (f"{SCHEME}://{bucket}/{each}", name)
        for each, name in sorted(names.items(), key=lambda item: item[1])
        if is_wanted(each)
        and (is_pattern or name.lower().endswith(endings))
        and not any(part.startswith((".", "_")) for part in name.split("/"))
    ]


def read_object(source: Source, url: str) -> Iterator[bytes]:
    """Yield the bytes of an object."""
    import obstore

    store = open_bucket(url, source.options)
    with translate_bucket_errors(store, url, is_begun=True):
        for piece in obstore.get(store, split_url(url)[1]).stream(min_chunk_size=PIECE_BYTES):
            yield bytes(piece)


def _fixed_prefix(pattern: str) -> str:
    """Return the part of a pattern up to the last "/" before its first wildcard."""
    start = re.split(r"[*?\[]", pattern, maxsplit=1)[0]
    return start[: start.rfind("/") + 1]


def _compile(pattern: str) -> re.Pattern[str]:
    """Return a pattern as in a shell: a wildcard matches no "/", and "**/" any folders."""

    def convert(token: str) -> str:
        if token in WILDCARDS:
            return WILDCARDS[token]
        if len(token) > 1:  # [abc] or [!abc]
            return f"[^{token[2:]}" if token[1] == "!" else token
        return re.escape(token)

    return re.compile("".join(map(convert, TOKENS.findall(pattern))))
