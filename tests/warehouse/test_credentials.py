from __future__ import annotations

import re

import pytest

from ppdm_core.model.errors import BadInput
from warehouse.credentials import check_url
from warehouse.postgresql import check_server_options, describe_server

PASSWORD, FORM = "contains a password", "is not a URL"


@pytest.mark.parametrize(
    ("rest", "words"),
    [
        ("u:CANARY@h/d", PASSWORD),
        (":CANARY@h/d", PASSWORD),
        ("u:12/CANARYss@h/d", PASSWORD),
        ("u:CANARYpa/ss@h/d", PASSWORD),
        ("u:12?CANARY@h/d", PASSWORD),
        ("u:12#CANARY@h/d", PASSWORD),
        ("u:CANARY@ss@h/d", PASSWORD),
        ("u%3ACANARY@h/d", PASSWORD),
        ("u:12/CANARY%40h/d", PASSWORD),
        ("u%3A12%2FCANARY%40h/d", FORM),
        ("u:12%2FCANARY%40h/d", FORM),
        ("u@h:CANARY/d", FORM),
        ("u@h:99999999/CANARY", FORM),
        ("u@[CANARY/d", FORM),
        ("u@h/d#CANARY", FORM),
        ("u@h/d?password=CANARY", PASSWORD),
        ("u@h/d?PassWord=CANARY", PASSWORD),
        ("u@h/d?pass%77ord=CANARY", PASSWORD),
        ("u@h/d?sslmode=require&sslpassword=CANARY", PASSWORD),
        ("u@h/d?oauth_client_secret=CANARY", PASSWORD),
        ("u@h/d?CANARY=1", "not supported"),
        ("u@h/d?CANARY", "not supported"),
    ],
)
def test_check_server_options_password_in_url_refused_and_not_shown(rest: str, words: str) -> None:
    for scheme in ("postgresql", "postgres"):
        with pytest.raises(BadInput, match=words) as caught:
            check_server_options({"url": f"{scheme}://{rest}"})
        error = caught.value
        assert error.remedy and "CANARY" not in f"{error}{error.as_dict()}"
        assert error.__cause__ is None and error.__context__ is None


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://u@localhost:5432/d",
        "postgresql://u@127.0.0.1/d",
        "postgresql://u@[::1]:5432/d",
        "postgresql://u@/d",
        "postgres://u@h.example.org/d?sslmode=verify-full&sslrootcert=/etc/root.pem",
        "postgresql://u%40server@h.example.org/d?sslmode=require",
    ],
)
def test_check_server_options_local_or_encrypted_accepted(url: str) -> None:
    check_server_options({"url": url})


@pytest.mark.parametrize(
    "query",
    ["", "?sslmode=prefer", "?sslmode=disable", "?sslmode=require&sslmode=disable", "?sslmode="],
)
def test_check_server_options_other_machine_without_tls_refused(query: str) -> None:
    with pytest.raises(BadInput, match="unencrypted") as caught:
        check_server_options({"url": f"postgresql://u@h.example.org/d{query}"})
    assert "sslmode=verify-full" in caught.value.remedy


@pytest.mark.parametrize(
    ("name", "url"),
    [("PGHOST", "postgresql://u@/d"), ("PGHOSTADDR", "postgresql://u@localhost/d")],
)
def test_check_server_options_other_machine_of_environment_refused(
    name: str, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(name, "192.0.2.1")
    with pytest.raises(BadInput, match="unencrypted"):
        check_server_options({"url": url})


def test_check_url_parameter_unsupported_remedy_lists_others() -> None:
    with pytest.raises(BadInput) as caught:
        check_url("postgresql://h/d?a=1", ("postgresql",), "url", frozenset({"x", "y"}))
    assert re.search(r"x, y", caught.value.remedy)


def test_describe_server_no_user() -> None:
    assert describe_server("postgresql://u@h:1/d?sslmode=require") == "h/d"
