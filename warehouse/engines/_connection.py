"""The connection to a scheduler, tried with TLS before dask connects, for errors that say why."""

from __future__ import annotations

import logging
import socket
import ssl
import warnings
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from ppdm_core.model.errors import BadInput, MachineTrouble
from warehouse.engines._sealing import check_private_file
from warehouse.engines.settings import EngineSettings

if TYPE_CHECKING:
    from distributed import Client

CONNECT_SECONDS = 10.0
OUTDATED = frozenset({9, 10})  # codes of OpenSSL: a certificate is not yet valid, or has expired
AGAIN = "Start it again, then run the same command, which continues from the parts that exist."
EXPIRED_ALERT = "SSLV3_ALERT_CERTIFICATE_EXPIRED"  # what the other side says of ours


def check_connection(settings: EngineSettings) -> None:
    """Raise BadInput if the scheduler does not answer, or not with TLS of the same authority."""
    parts = urlsplit(settings.address)
    assert parts.hostname and parts.port  # the release file is checked
    context = load_certificates(settings)
    try:
        plain = socket.create_connection((parts.hostname, parts.port), timeout=CONNECT_SECONDS)
    except OSError:
        raise BadInput(
            f"No scheduler answers at {settings.address}.",
            remedy="Start it, or correct 'address' in [engine].",
        ) from None
    with closing(plain):
        try:
            with context.wrap_socket(plain) as encrypted:
                encrypted.recv(1)  # a scheduler that refuses this client's certificate says so here
        except ssl.SSLCertVerificationError as error:
            if error.verify_code in OUTDATED:
                raise outdated(settings, "The certificate of the scheduler") from None
            raise foreign_authority(settings, "The certificate of the scheduler") from None
        except ssl.SSLError as error:
            if error.reason == EXPIRED_ALERT:
                raise outdated(settings, "The certificate of this client") from None
            if "ALERT" in (error.reason or ""):
                raise foreign_authority(settings, "The certificate of this client") from None
            raise no_tls(settings) from None
        except OSError:
            raise no_tls(settings) from None


def foreign_authority(settings: EngineSettings, whose: str) -> BadInput:
    return BadInput(
        f"{whose} is not one of the authority of the cluster at {settings.address}.",
        file=settings.ca,
        remedy="Name the certificates of this cluster in [engine].",
    )


def outdated(settings: EngineSettings, whose: str) -> BadInput:
    return BadInput(
        f"{whose}, or that of its authority, is not valid at this time.",
        file=settings.ca,
        remedy=f"Compare the clocks, and renew the certificates of {settings.address}.",
    )


def no_tls(settings: EngineSettings) -> BadInput:
    return BadInput(
        f"What answers at {settings.address} has no TLS.",
        remedy="Start the scheduler with certificates, or correct 'address' in [engine].",
    )


def load_certificates(settings: EngineSettings) -> ssl.SSLContext:
    """Return what TLS needs; raise BadInput if a file is missing, wrong, or readable by others."""
    for path in (settings.ca, settings.certificate):
        if not Path(path).is_file():
            raise BadInput(
                f"The certificate {Path(path).name} does not exist.",
                file=path,
                remedy="Name the certificates of the cluster in [engine].",
            )
    check_private_file(Path(settings.private_key))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False  # as dask: the authority signs for this cluster alone
    context.verify_mode = ssl.CERT_REQUIRED
    try:
        context.load_verify_locations(settings.ca)
        context.load_cert_chain(settings.certificate, settings.private_key)
    except (ssl.SSLError, OSError):
        raise BadInput(
            "The certificates of [engine] cannot be read, or do not belong together.",
            file=settings.certificate,
            remedy="Name certificate and key that were made for this client.",
        ) from None
    return context


def connect(settings: EngineSettings) -> Client:
    """Return a client of the cluster."""
    try:
        from distributed import Client, Security
    except ImportError:
        raise BadInput(
            "The engine 'dask' is not installed.", remedy="Install it: pip install 'ppdm[cluster]'"
        ) from None
    for name in ("distributed", "distributed.client", "distributed.core", "distributed.comm"):
        logging.getLogger(name).setLevel(
            logging.CRITICAL
        )  # errors are raised here, in one sentence
    security = Security(
        require_encryption=True,
        tls_ca_file=settings.ca,
        tls_client_cert=settings.certificate,
        tls_client_key=settings.private_key,
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # other versions of packages: the known block decides
        try:
            return Client(
                settings.address,
                security=security,
                timeout=CONNECT_SECONDS,
                set_as_default=False,
                name="ppdm",
            )
        except OSError:
            raise lost_scheduler(settings) from None


def lost_scheduler(settings: EngineSettings) -> MachineTrouble:
    return MachineTrouble(
        f"The scheduler of the cluster at {settings.address} stopped answering.", remedy=AGAIN
    )
