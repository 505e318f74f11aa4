"""Files of a pull request are data only: they start no program and do not redirect secrets."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from gpolicy.checking.settings_tables import read_settings
from gpolicy.errors import InputError
from gpolicy.policy.settings_file import CHECK_KEYS
from tests.cli.command_line import ROOT, Done, gpolicy

STATE = f"snapshot:{ROOT / 'policies' / 'two-groups.snapshot.json'}"
WATCHED = """
import json, os, sys
told = os.open(sys.argv[1], os.O_WRONLY | os.O_CREAT | os.O_APPEND)
def hook(event, arguments):
    if event.startswith(("subprocess.", "os.system", "os.exec", "os.posix_spawn", "os.spawn", "os.fork", "socket.")):
        os.write(told, (json.dumps([event, repr(arguments)]) + "\\n").encode())
sys.addaudithook(hook)
from gpolicy.cli.running import run
sys.exit(max(run(call) for call in json.loads(sys.argv[2])))
"""
NO_KEYS = (
    *('state = "rapi://evil.example.org"', 'destination = "rapi://evil.example.org"', 'to = "ssh://evil.example.org"'),
    *('rapi-ca = "evil.pem"', 'rapi_ca = "evil.pem"', "insecure-rapi = true", 'rapi-credentials = "/etc/passwd"'),
    *('command = "touch sprung"', 'editor = "touch sprung"', 'plugins = ["evil"]', 'rules-path = "."', 'hook = "evil"'),
)


def run(directory: Path, *calls: list[str]) -> tuple[Done, list[list[str]]]:
    """Run gpolicy with secrets, some calls in one process; return how it ended, and the programs and connections."""
    told = directory / "told"
    command = [sys.executable, "-c", WATCHED, str(told), json.dumps(calls)]
    environ = {**os.environ, "PYTHONPATH": str(ROOT), "GPOLICY_RAPI_USER": "u", "GPOLICY_RAPI_PASSWORD": "hush-33"}
    done = subprocess.run(command, cwd=directory, env=environ, capture_output=True, text=True, check=False)
    assert "hush-33" not in done.stdout + done.stderr
    assert "Traceback" not in done.stderr
    return done, [json.loads(line) for line in told.read_text().splitlines()]


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    shutil.copytree(ROOT / "policies" / "two-groups", tmp_path / "policy")
    return tmp_path


def test_the_audit_hook_sees_programs(checkout: Path) -> None:
    _, told = run(checkout, ["plan", "policy", "--state", "local:"])
    assert told == []  # there is no config.data: nothing is asked
    _, told = run(checkout, ["plan", "policy", "--state", "ssh://nobody.invalid"])
    assert any(event == "subprocess.Popen" for event, _ in told)


def test_settings_have_no_key_that_runs_programs(checkout: Path) -> None:
    assert set(CHECK_KEYS) == {"select", "ignore", "fail-on", "baseline", "severity", "per-file-ignores"}
    settings = checkout / "policy" / "gpolicy.toml"
    for key in NO_KEYS:
        for table in ("", "[check]\n", "[rules]\n", "[rules.GP113]\n"):
            settings.write_text(f"{table}{key}\n")
            with pytest.raises(InputError):
                read_settings(settings)
    done, told = run(checkout, ["check", "policy"])
    assert (done.returncode, told) == (3, [])


def test_a_policy_and_its_settings_start_nothing(checkout: Path) -> None:
    (checkout / "policy" / "gpolicy.toml").write_text(
        '[check]\nselect = ["ALL"]\nignore = ["GP113"]\nfail-on = "warning"\nseverity = {GP411 = "hint"}\n'
        'per-file-ignores = {"*.yaml" = ["GP411"]}\n'
    )
    (checkout / "policy" / "more.yaml").write_text(
        "gpolicy: v1\nkind: NodeSet\nname: '$(touch sprung)'\nnodes: ['`touch sprung`', '!touch sprung']\n"
        "tags: ['!!python/object/apply:os.system [touch sprung]']\n"
    )
    plan = ["plan", "policy", "--state", STATE]
    _, told = run(checkout, ["check", "policy"], plan, ["show", "policy"], ["test", "policy"])
    assert told == []
    assert not list(checkout.rglob("sprung"))


def test_check_finds_a_mistake_in_a_cluster_of_the_settings(checkout: Path) -> None:
    (checkout / "gpolicy.toml").write_text('[clusters.ham]\nstate = "rapi://ham"\npolcy = "policy"\n')
    done, told = run(checkout, ["check", "policy"])
    assert (done.returncode, told) == (1, [])
    assert "gpolicy.toml:3:1: error GP028 settings-mistake: clusters.ham.polcy: unknown key" in done.stdout
    assert "Did you mean `policy`?" in done.stdout
    assert gpolicy("check", "policy", "--isolated", cwd=checkout).returncode == 0


def test_a_cluster_of_the_settings_gets_no_password_of_another(checkout: Path) -> None:
    """check contacts none of them; plan asks the one that it names only with a password that is for its host."""
    (checkout / "gpolicy.toml").write_text(
        '[clusters.evil]\npolicy = "policy"\nstate = "rapi://evil.invalid"\ncredentials = "environment"\n'
    )
    _, told = run(checkout, ["check", "policy"], ["test", "policy"], ["fmt", "--check", "policy"])
    assert told == []
    done, told = run(checkout, ["plan", "policy"])
    assert done.returncode == 3
    assert "GPOLICY_RAPI_HOSTS is not set" in done.stderr
    assert told == []
