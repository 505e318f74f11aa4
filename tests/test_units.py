"""The units of systemd are sound, and run the commands for one cluster or for many, as their settings say."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
from pathlib import Path
from typing import Final

import pytest

DEBIAN: Final = Path(__file__).resolve().parent.parent / "debian"
UNITS: Final = sorted(DEBIAN.glob("gpolicy.*.service"))
COMMON: Final = "--output prometheus=/var/lib/prometheus/node-exporter/gpolicy_{}.prom"


def words(verb: str, settings: str) -> list[str]:
    """Return the words that the command of a unit gets, with the settings of a user as EnvironmentFile."""
    unit = (DEBIAN / f"gpolicy.gpolicy-{verb}.service").read_text(encoding="utf-8")
    lines = dict(re.findall(r"^(Environment|ExecStart)=(.*)$", unit, re.MULTILINE))
    known = dict(item.split("=", 1) for item in (*shlex.split(lines["Environment"]), *settings.splitlines()))
    made = re.sub(r"(?<!\$)\$(\w+)", lambda found: known[found[1]], lines["ExecStart"]).replace("$$", "$")
    echo = [word.replace("/usr/bin/gpolicy", "printf '%s\\n'") for word in shlex.split(made)]
    argv = echo if echo[0] == "/bin/sh" else ["/bin/sh", "-c", " ".join(echo)]
    done = subprocess.run(argv, env=known, capture_output=True, text=True, check=True)
    return done.stdout.splitlines()


@pytest.mark.parametrize(
    ("verb", "settings", "asked"),
    [
        ("capacity", "", "--state local:"),
        ("capacity", "CLUSTERS=--all /etc/gpolicy", "--all /etc/gpolicy"),
        ("drift", "", "--state local: /etc/gpolicy"),
        ("drift", "POLICY=/etc/ham\nSTATE=rapi://ham", "--state rapi://ham /etc/ham"),
        ("drift", "CLUSTERS=--all /etc/gpolicy", "--all /etc/gpolicy"),
        ("drift", "CLUSTERS=--label stage=canary /etc/gpolicy\nPOLICY=/x", "--label stage=canary /etc/gpolicy"),
    ],
)
def test_a_unit_asks_for_the_clusters_of_its_settings(verb: str, settings: str, asked: str) -> None:
    assert words(verb, settings) == [verb, *asked.split(), *COMMON.format(verb).split()]


def test_the_unit_of_pages_asks_for_the_clusters_of_its_settings() -> None:
    pages = ["--pages", "/var/lib/gpolicy/pages"]
    assert words("pages", "") == ["clusters", "/etc/gpolicy", *pages]
    options = "CLUSTERS=/etc/ham --label stage=prod\nOPTIONS=--history /srv"
    assert words("pages", options) == ["clusters", "/etc/ham", "--label", "stage=prod", "--history", "/srv", *pages]


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="no systemd-analyze (Debian package systemd)")
@pytest.mark.parametrize("service", UNITS, ids=lambda file: file.stem)
def test_units_are_sound(service: Path, tmp_path: Path) -> None:
    for file in (service, service.with_suffix(".timer")):
        text = file.read_text(encoding="utf-8").replace("ExecStart=/usr/bin/gpolicy", "ExecStart=/bin/sh")
        (tmp_path / file.name.removeprefix("gpolicy.")).write_text(text, encoding="utf-8")
    done = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", *sorted(tmp_path.iterdir())],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stdout + done.stderr) == (0, "")
