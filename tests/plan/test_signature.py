"""Signatures of plan files, made and verified by the system's own ssh-keygen."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from gpolicy.errors import InputError
from gpolicy.plan.plan_file import read_plan
from gpolicy.plan.trust import Signers
from tests.cli.command_line import gpolicy
from tests.plan.planned import cluster, plan_for, plan_text

pytestmark = pytest.mark.skipif(shutil.which("ssh-keygen") is None, reason="no ssh-keygen here (openssh-client)")
CI = "ci@example.org"


class Bench:
    """A plan, a key of CI that is allowed to sign, and one that is not."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.plan, self.allowed = directory / "plan.json", directory / "allowed signers"
        self.plan.write_text(
            plan_text(plan_for(cluster(), "Cluster\nname: cluster.example.org\nipolicy: {vcpu-ratio: 7}"))
        )
        for name in ("ci", "other"):
            self.keygen("-q", "-t", "ed25519", "-N", "", "-C", name, "-f", name)
        self.allow(f'{CI} namespaces="gpolicy-plan"')

    def keygen(self, *words: str) -> None:
        subprocess.run(["ssh-keygen", *words], cwd=self.directory, check=True, capture_output=True)

    def allow(self, principals: str, key: str = "ci") -> None:
        public = (self.directory / f"{key}.pub").read_text()
        self.allowed.write_text(f"{principals} {public}")

    def sign(self, key: str = "ci", namespace: str = "gpolicy-plan") -> Path:
        signature = self.directory / "plan.json.sig"
        signature.unlink(missing_ok=True)
        self.keygen("-Y", "sign", "-n", namespace, "-f", key, "plan.json")
        return signature

    def signers(self, signature: Path | None = None) -> Signers:
        beside = self.directory / "plan.json.sig"
        return Signers(allowed=self.allowed, signature=signature or beside, search_path=os.environ["PATH"])

    def signed_by(self, principal: str, key: str = "ci") -> str:
        command = ["ssh-keygen", "-l", "-f", f"{key}.pub"]
        shown = subprocess.run(command, cwd=self.directory, check=True, capture_output=True, text=True).stdout
        return f"{principal} (ED25519 {shown.split()[1]})"

    def refusal(self) -> str:
        with pytest.raises(InputError) as raised:
            read_plan(self.plan, self.signers())
        assert "\n" not in raised.value.message
        return raised.value.message


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


def test_a_signed_plan_is_read_and_names_its_signer(bench: Bench) -> None:
    bench.sign()
    assert read_plan(bench.plan, bench.signers()).signer == bench.signed_by(CI)
    assert read_plan(bench.plan).signer is None


@pytest.mark.parametrize("principal", ["-x", "--help", "*@example.org", "a@b.org,-f"])
def test_names_of_signers_are_not_options(bench: Bench, principal: str) -> None:
    bench.allow(principal)
    bench.sign()
    names = principal.split(",")
    assert read_plan(bench.plan, bench.signers()).signer in [bench.signed_by(name) for name in names]


def test_a_name_that_fits_everybody_but_one_is_shown_with_the_key(bench: Bench) -> None:
    bench.allow("!ci,*")
    bench.sign()
    assert read_plan(bench.plan, bench.signers()).signer == bench.signed_by("!ci")


def test_a_key_with_an_earlier_line_for_something_else_is_refused_with_the_way_out(bench: Bench) -> None:
    bench.allow(f'{CI} namespaces="gpolicy-plan"')
    wanted = bench.allowed.read_text()
    bench.allow('other@example.org namespaces="git"')
    bench.allowed.write_text(bench.allowed.read_text() + wanted)
    bench.sign()
    done = gpolicy("render", bench.plan, "--signers", bench.allowed)
    assert done.returncode == 3
    assert "is not a valid signature of this plan" in done.stderr
    assert f"write each key on one line of {bench.allowed}" in done.stderr


def test_one_byte_more_is_another_plan(bench: Bench) -> None:
    bench.sign()
    bench.plan.write_bytes(bench.plan.read_bytes() + b"\n")
    read_plan(bench.plan)
    assert "is not a valid signature of this plan" in bench.refusal()


def test_a_signature_of_another_purpose_does_not_count(bench: Bench) -> None:
    bench.sign(namespace="git")
    bench.allow(CI)
    assert "is not a valid signature of this plan" in bench.refusal()


def test_a_signature_of_somebody_else_does_not_count(bench: Bench) -> None:
    bench.sign("other")
    assert "no signer in" in bench.refusal()


def test_an_expired_key_does_not_count(bench: Bench) -> None:
    bench.allow(f'{CI} valid-before="20200101"')
    bench.sign()
    bench.refusal()


@pytest.mark.parametrize("content", [b"", b"x", b"-----BEGIN SSH SIGNATURE-----\n", None])
def test_without_a_good_signature_there_is_no_plan(bench: Bench, content: bytes | None) -> None:
    if content is None:
        assert "no file with the signature" in bench.refusal()
        return
    (bench.directory / "plan.json.sig").write_bytes(content)
    assert "no signer in" in bench.refusal()


def test_a_file_that_is_too_large_for_a_signature_keeps_nobody_busy(bench: Bench) -> None:
    os.truncate(bench.sign(), 64 * 1024**2)
    assert "67,108,864 bytes are no signature" in bench.refusal()


def test_without_ssh_keygen_nothing_is_verified(bench: Bench, tmp_path: Path) -> None:
    bench.sign()
    signers = Signers(allowed=bench.allowed, signature=tmp_path / "plan.json.sig", search_path=str(tmp_path / "none"))
    with pytest.raises(InputError, match="cannot be verified"):
        read_plan(bench.plan, signers)


def test_ssh_keygen_sees_nothing_of_the_environment(bench: Bench, tmp_path: Path) -> None:
    programs = tmp_path / "bin"
    programs.mkdir()
    (programs / "ssh-keygen").write_text(
        f'#!/bin/sh\nenv > "{tmp_path}/seen"\nexec "{shutil.which("ssh-keygen")}" "$@"\n'
    )
    (programs / "ssh-keygen").chmod(0o755)
    bench.sign()
    environment = {"PATH": f"{programs}:{os.environ['PATH']}", "GPOLICY_RAPI_PASSWORD": "s3cret", "SSH_AUTH_SOCK": "x"}
    done = gpolicy("render", bench.plan, "--signers", bench.allowed, env=environment, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    seen = (tmp_path / "seen").read_text()
    assert "s3cret" not in seen
    assert "SSH_AUTH_SOCK" not in seen


def test_render_takes_signed_plans_only_when_asked_to(bench: Bench) -> None:
    done = gpolicy("render", bench.plan, "--signers", bench.allowed)
    assert done.returncode == 3
    assert "no file with the signature" in done.stderr
    assert "ssh-keygen -Y sign -n gpolicy-plan" in done.stderr
    elsewhere = bench.sign().rename(bench.directory / "elsewhere")
    assert gpolicy("render", bench.plan, "--signers", bench.allowed).returncode == 3
    done = gpolicy("render", bench.plan, "--signers", bench.allowed, "--signature", elsewhere)
    assert done.returncode == 0, done.stderr
    assert f"signed by {bench.signed_by(CI)}" in done.stdout
    done = gpolicy("render", bench.plan, "--signature", elsewhere)
    assert done.returncode == 3
    assert "--signature needs --signers" in done.stderr


def test_apply_refuses_before_it_looks_at_the_cluster(bench: Bench) -> None:
    done = gpolicy("apply", bench.plan, "--to", "rapi://127.0.0.1:1", "--yes", "--signers", bench.allowed)
    assert done.returncode == 3
    assert "no file with the signature" in done.stderr


@pytest.mark.parametrize(
    ("output", "code"), [('Good "x" signature with ED25519 key SHA256:abc', 1), ("Good", 0), ("", 255)]
)
def test_only_a_verdict_with_a_key_is_believed(bench: Bench, output: str, code: int) -> None:
    signature = bench.sign()
    program = bench.directory / "bin" / "ssh-keygen"
    program.parent.mkdir()
    program.write_text(f"#!/bin/sh\nif [ \"$2\" = verify ]; then echo '{output}'; exit {code}; fi; echo {CI}\n")
    program.chmod(0o755)
    signers = Signers(allowed=bench.allowed, signature=signature, search_path=f"{program.parent}:/bin:/usr/bin")
    with pytest.raises(InputError, match="is not a valid signature of this plan"):
        read_plan(bench.plan, signers)
