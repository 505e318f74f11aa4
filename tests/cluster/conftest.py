from __future__ import annotations

import subprocess
from pathlib import Path

import pytest


def _certificate(directory: Path, name: str, *extensions: str) -> Path:
    """Make a self-signed certificate with its key in one file, as Ganeti does."""
    key, file = directory / "key.pem", directory / f"{name.split('.', maxsplit=1)[0]}.pem"
    options = [option for extension in extensions for option in ("-addext", extension)]
    command = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
    subprocess.run(
        [*command, "-keyout", key, "-out", file, "-subj", f"/CN={name}", "-days", "3", *options],
        check=True,
        capture_output=True,
    )
    file.write_text(file.read_text() + key.read_text())
    return file


@pytest.fixture(scope="session")
def ganeti_certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """As every cluster has it: for a name that no host has."""
    return _certificate(tmp_path_factory.mktemp("tls"), "ganeti.example.com")


@pytest.fixture(scope="session")
def host_certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """For this machine's own address."""
    return _certificate(tmp_path_factory.mktemp("tls"), "here", "subjectAltName=IP:127.0.0.1")


@pytest.fixture(scope="session")
def other_certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Of somebody else, for the name that all clusters have."""
    return _certificate(tmp_path_factory.mktemp("tls"), "ganeti.example.com")
