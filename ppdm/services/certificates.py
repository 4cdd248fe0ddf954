"""The certificates of a cluster that is started for trying: one authority, one certificate."""

from __future__ import annotations

import os
from datetime import timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from warehouse.clock import now

VALID_DAYS = 30


def write_certificates(folder: Path) -> None:
    """Write the certificate of a new authority, and one that it signed, with its private key.

    The key of the authority is not stored: it signs nothing else.
    """
    authority, node = (ec.generate_private_key(ec.SECP256R1()) for _ in range(2))
    root = sign("ppdm cluster authority", authority, authority, None)
    certificate = sign("ppdm cluster", node, authority, root)
    pem = serialization.Encoding.PEM
    write_private(folder / "ca.pem", root.public_bytes(pem))
    write_private(folder / "certificate.pem", certificate.public_bytes(pem))
    private = node.private_bytes(
        pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    write_private(folder / "private.key", private)


def sign(
    name: str,
    key: ec.EllipticCurvePrivateKey,
    authority: ec.EllipticCurvePrivateKey,
    issuer: x509.Certificate | None,
) -> x509.Certificate:
    """Return a certificate; without an issuer, that of an authority."""
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    start = now() - timedelta(hours=1)  # clocks of machines differ
    public = key.public_key()
    identifier = x509.AuthorityKeyIdentifier.from_issuer_public_key(authority.public_key())
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject if issuer is None else issuer.subject)
        .public_key(public)
        .serial_number(x509.random_serial_number())
        .not_valid_before(start)
        .not_valid_after(start + timedelta(days=VALID_DAYS))
        .add_extension(x509.BasicConstraints(issuer is None, None), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(public), critical=False)
        .add_extension(identifier, critical=False)
        .add_extension(x509.SubjectAlternativeName([x509.DNSName("localhost")]), critical=False)
        .sign(authority, hashes.SHA256())
    )


def write_private(path: Path, content: bytes) -> None:
    """Write a new file that only its owner can read."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(content)
