"""`gpolicy apply` as a user runs it, against a server that speaks as Ganeti's remote API.

Where it gets signals or has a terminal, it is a process of its own, and the server listens.
"""

from __future__ import annotations

import hashlib
import json
import os
import pty
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

import gpolicy as public
from gpolicy.apply.plan_run import Intention
from tests.apply.bench import COULD_NOT_RUN, FINDINGS, FINE, Bench
from tests.apply.pretend_ganeti import fails, then
from tests.apply.pretend_rapi import PASSWORD
from tests.apply.same_process import gpolicy
from tests.cli.command_line import FOUR_STEPS, ROOT, gpolicy_child as gpolicy_process, written_to


def test_a_plan_is_applied_and_taken_back(served: Bench) -> None:
    """The first run is a process of its own."""
    bench = served
    before = bench.server.ganeti.content()
    done = gpolicy_process(*bench.call("--yes"), env=bench.env)
    assert (done.returncode, done.stderr) == (FINE, "")
    assert "[1/4] modify the cluster: ipolicy.vcpu-ratio\n  job 1\n" in done.stdout
    assert "done: all 5 changes are there" in done.stdout
    file, bench.plan = bench.plan, bench.directory / "again.json"
    assert "No changes" in bench.make_plan(FOUR_STEPS).stdout
    bench.plan = file
    back = bench.apply("--yes", "--rollback")
    assert back.returncode == FINE, back.stderr
    assert "taken back" in back.stdout
    assert bench.server.ganeti.content() == before


def test_a_value_that_the_rollback_sets_is_read_before_the_first_step(bench: Bench) -> None:
    bench.make_plan("gpolicy: v1\nkind: NodeGroup\nname: gold\ndiskparams: {rbd: {access: userspace}}\n")
    bench.server.ganeti.model.own["diskparams"]["rbd"]["access"] = "userspace"
    done = bench.apply("--yes")
    assert done.returncode == FINDINGS
    assert "cluster diskparams.rbd.access" in done.stderr + done.stdout
    assert bench.server.ganeti.jobs == []


def test_a_second_apply_is_refused_with_a_hint(bench: Bench) -> None:
    assert bench.apply("--yes").returncode == FINE
    done = bench.apply("--yes")
    assert done.returncode == COULD_NOT_RUN
    assert "was applied before" in done.stderr
    assert "--rollback undoes it" in done.stderr
    assert bench.apply("--yes", "--resume").returncode == FINE
    assert len(bench.server.ganeti.jobs) == 4


def test_without_a_terminal_apply_does_nothing(bench: Bench) -> None:
    done = bench.apply()
    assert done.returncode == COULD_NOT_RUN
    assert "--yes" in done.stderr
    assert bench.server.ganeti.jobs == []


@pytest.mark.parametrize("answer", ["no", "y"])
def test_on_a_terminal_only_yes_is_taken_for_a_yes(bench: Bench, answer: str) -> None:
    done = gpolicy(*bench.call(), env=bench.env, cwd=bench.directory, answer=answer)
    assert done.returncode == FINDINGS
    assert bench.server.ganeti.jobs == []
    assert "move node1 to group platinum" in done.stdout
    assert "Only yes is taken for a yes" in done.stdout


def test_on_a_terminal_apply_asks(served: Bench) -> None:
    ours, theirs = pty.openpty()
    environment = {"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT), **served.env}
    with subprocess.Popen(
        [sys.executable, "-m", "gpolicy", *served.call()],
        env=environment, stdin=theirs, stdout=theirs, stderr=theirs,
    ) as process:  # fmt: skip
        os.close(theirs)
        said = b""
        while b"yes is taken" not in said:
            said += os.read(ours, 65536)
        os.write(ours, b"yes\n")
        said += b"".join(written_to(ours))
        assert process.wait(30) == FINE
    os.close(ours)
    assert len(served.server.ganeti.jobs) == 4
    assert b"move node1 to group platinum" in said


def test_a_stale_plan_is_refused_with_what_changed(bench: Bench) -> None:
    bench.server.ganeti.model.own["ipolicy"]["vcpu-ratio"] = 5.5
    done = bench.apply("--yes")
    assert done.returncode == FINDINGS
    assert "cluster ipolicy.vcpu-ratio: expected" in done.stderr
    assert "found 5.5" in done.stderr
    assert "nothing was done" in done.stderr
    assert bench.server.ganeti.jobs == []
    assert not bench.journal.exists()


def test_warnings_of_a_job_are_shown(bench: Bench) -> None:
    bench.server.ganeti.mishaps = [
        then(lambda there: there.jobs[-1].log.append(" - WARNING: the following instances violate them: inst1"))
    ]
    done = bench.apply("--yes")
    assert done.returncode == FINE
    assert "WARNING: the following instances violate them: inst1" in done.stdout


GUARDED = """gpolicy: v1
kind: Cluster
name: cluster
ganeti_version: '3.0'
ipolicy:
  minmax:
    - min: {memory-size: 128, disk-size: 1024, disk-count: 0, cpu-count: 1, nic-count: 0, spindle-use: 1}
      max: {memory-size: 32768, disk-size: 1048576, disk-count: 16, cpu-count: 4, nic-count: 8, spindle-use: 12}
---
gpolicy: v1
kind: Guards
guards:
  - {name: nobody-violates, newly_violating: 0}
"""


def test_a_declared_guard_is_judged_again_on_the_cluster_as_it_is(bench: Bench) -> None:
    done = bench.make_plan(GUARDED)
    assert done.returncode == FINE, done.stdout + done.stderr
    bench.server.backend = {"vcpus": 5}
    done = bench.apply("--yes")
    assert done.returncode == FINDINGS
    assert "a guard fails on the cluster as it is now: nobody-violates: " in done.stderr
    assert "newly violate the policy (inst" in done.stderr
    assert bench.server.ganeti.jobs == []
    assert not bench.journal.exists()
    done = bench.make_plan(GUARDED, "--allow", "nobody-violates")  # what violates it could not start elsewhere
    assert "FAILS takes-instances: group default would take no new instance: the loss of node1 cannot" in done.stdout
    allowed = ("--allow", "nobody-violates", "--allow", "takes-instances")
    assert bench.make_plan(GUARDED, *allowed).returncode == FINE
    assert bench.apply("--yes").returncode == FINE


def test_a_plan_without_what_its_guards_allow_is_refused(bench: Bench) -> None:
    plan = json.loads(bench.plan.read_text())
    plan["guards"].append({"name": "my-guard", "ok": True, "message": "fine", "allowed": False})
    bench.plan.write_text(json.dumps(plan))
    done = bench.apply("--yes")
    assert done.returncode == COULD_NOT_RUN
    assert "the guards that are declared are not those that have a verdict" in done.stderr


EXCLUSIVE = """gpolicy: v1
kind: Cluster
name: cluster
ganeti_version: '3.0'
---
gpolicy: v1
kind: NodeGroup
name: gold
ndparams: {exclusive_storage: true}
"""


def test_allowed_guards_are_those_of_the_present_cluster(bench: Bench) -> None:
    """A plan file cannot allow a guard in words of its own."""
    assert bench.make_plan(EXCLUSIVE, "--allow", "exclusive-storage").returncode == FINE
    plan = json.loads(bench.plan.read_text())
    (guard,) = plan["guards"]
    true = guard["message"]
    bench.plan.write_text(json.dumps({**plan, "guards": [{**guard, "message": "no node is concerned"}]}))
    done = bench.apply("--yes")
    assert done.returncode == FINDINGS
    assert f"was allowed when it said: no node is concerned; now it says: {true}" in done.stderr
    bench.plan.write_text(json.dumps(plan))
    done = bench.apply("--yes")
    assert done.returncode == FINE, done.stderr
    assert f"guard exclusive-storage (allowed): {true}" in done.stdout


def test_a_plan_that_names_no_uuid_says_so(bench: Bench) -> None:
    plan = json.loads(bench.plan.read_text())
    plan["cluster_uuid"] = None
    bench.plan.write_text(json.dumps(plan))
    done = bench.apply("--yes")
    assert done.returncode == FINE, done.stderr
    assert "note: the plan holds no UUID: only the name says that this is the right cluster" in done.stdout


def test_a_step_that_the_route_cannot_carry_is_reported_first(bench: Bench) -> None:
    bench.make_plan(FOUR_STEPS.replace("ipolicy:", "compression_tools: [gzip, lzop]\nipolicy:"))
    done = bench.apply("--yes")
    assert done.returncode == COULD_NOT_RUN
    assert "cannot carry step 1 (modify the cluster: compression_tools)" in done.stderr
    assert bench.server.ganeti.jobs == []


def test_the_prompt_shows_every_value(bench: Bench) -> None:
    bench.make_plan(
        FOUR_STEPS.replace("ipolicy:", "hvparams: {kvm: {kvm_path: /opt/kvm}}\nmac_prefix: '52:54:00'\nipolicy:")
    )
    done = bench.apply("--yes")
    assert (done.returncode, done.stderr) == (FINE, "")
    shown = done.stdout[: done.stdout.index("[1/")]
    assert "cluster ipolicy.vcpu-ratio: 5 → 7\n" in shown
    assert 'cluster mac_prefix: "aa:00:00" → "52:54:00"\n' in shown
    assert '→ "/opt/kvm"  ! root on the nodes runs the program that this names\n' in shown
    assert 'node/node1: from group "default" to "platinum"\n' in shown
    assert "node/node2 ndparams.spindle_count: 4 → 9\n" in shown
    back = bench.apply("--yes", "--rollback").stdout
    assert "cluster ipolicy.vcpu-ratio: 7 → 5\n" in back[: back.index("[1/")]


@pytest.mark.parametrize("part", ["body", "argv", "id", "inverse"])
def test_an_altered_plan_is_refused(bench: Bench, part: str) -> None:
    plan = json.loads(bench.plan.read_text())
    step = plan["steps"][0]
    if part == "body":
        step["rapi"]["body"]["hvparams"] = {"kvm": {"kvm_path": "/tmp/x"}}
    elif part == "argv":
        step["argv"].append("--hypervisor-parameters=kvm:kvm_path=/tmp/x")
    elif part == "id":
        step["id"] = "1&force=1"
    else:
        step["inverse"]["rapi"]["body"] = {"hvparams": {"kvm": {"kvm_path": "/tmp/x"}}}
    bench.plan.write_text(json.dumps(plan))
    for done in (bench.apply("--yes"), gpolicy("render", bench.plan), gpolicy("render", bench.plan, "--rollback")):
        assert done.returncode == COULD_NOT_RUN
        assert "step 1 (modify the cluster: ipolicy.vcpu-ratio): steps[0]." in done.stderr
        assert "make a new plan" in done.stderr
        assert done.stdout == ""
    assert bench.server.ganeti.jobs == []
    assert not bench.journal.exists()


@pytest.mark.skipif(shutil.which("ssh-keygen") is None, reason="no ssh-keygen here (openssh-client)")
def test_the_journal_names_what_was_approved_and_by_whom(bench: Bench) -> None:
    key, allowed = bench.directory / "key", bench.directory / "allowed"
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", key], check=True)
    allowed.write_text(f"ci@example.org {key.with_suffix('.pub').read_text()}")
    assert bench.apply("--yes", "--signers", str(allowed)).returncode == COULD_NOT_RUN
    sign = ["ssh-keygen", "-Y", "sign", "-n", "gpolicy-plan", "-f", str(key), str(bench.plan)]
    subprocess.run(sign, check=True, capture_output=True)
    done = bench.apply("--yes", "--signers", str(allowed))
    assert done.returncode == FINE, done.stderr
    digest = f"sha256:{hashlib.sha256(bench.plan.read_bytes()).hexdigest()}"
    shown = subprocess.run(["ssh-keygen", "-l", "-f", key], check=True, capture_output=True, text=True).stdout
    signer = f"ci@example.org (ED25519 {shown.split()[1]})"
    assert f"plan {digest}, signed by {signer}" in done.stdout
    begin = bench.events()[0]
    assert (begin["plan_digest"], begin["signer"]) == (digest, signer)


def test_no_secret_is_printed(bench: Bench) -> None:
    bench.server.ganeti.mishaps = [None, fails("no")]
    texts = [bench.apply("--yes"), bench.apply("--yes", "--resume"), bench.apply("--yes", "--rollback")]
    told = "".join(done.stdout + done.stderr for done in texts) + bench.journal.read_text() + bench.plan.read_text()
    assert PASSWORD not in told
    assert bench.journal.stat().st_mode & 0o777 == 0o600


def test_an_untrusted_certificate_is_no_destination(served: Bench) -> None:
    words: list[str | Path] = ["apply", served.plan, "--to", served.server.address, *served.reach[:2], "--yes"]
    done = gpolicy_process(*words, env=served.env)
    assert done.returncode == COULD_NOT_RUN
    assert "certificate is not trusted" in done.stderr
    assert served.server.asked == []


@pytest.mark.parametrize(
    "destination", ["", "config:x", "ssh://-x", "local:/x", "rapi://", "https://a", "rapi://u:secret@h"]
)
def test_wrong_destinations_are_one_line(served: Bench, destination: str) -> None:
    done = gpolicy("apply", served.plan, "--to", destination, "--yes", env=served.env)
    assert done.returncode == COULD_NOT_RUN
    assert len(done.stderr.splitlines()) <= 2
    assert "secret" not in done.stderr


def test_a_closed_output_changes_nothing(served: Bench) -> None:
    served.server.ganeti.mishaps = [None, None, fails("no")]
    process = served.start()
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdout.readline()
    process.stdout.close()
    with process.stderr:
        assert "step 3 " in process.stderr.read()
    assert process.wait(30) == FINDINGS
    assert served.apply("--yes", "--resume").returncode == FINE


def test_nothing_to_do(bench: Bench) -> None:
    bench.apply("--yes")
    bench.plan = bench.directory / "empty.json"
    assert bench.make_plan(FOUR_STEPS).returncode == FINE
    done = bench.apply("--yes")
    assert done.returncode == FINE
    assert "nothing to do" in done.stdout


def test_python_applies_and_takes_back_with_consent_only(bench: Bench) -> None:
    before, said = bench.server.ganeti.content(), list[str]()
    options = public.SourceOptions(
        rapi_credentials=bench.directory / "secret", rapi_ca=Path(bench.reach[-1]), environ=bench.env
    )
    request = public.ApplyRequest(plan=bench.plan, destination=bench.server.address, options=options)
    assert public.apply_plan(request, agree=lambda _: False) is None
    assert not bench.journal.exists()
    shown: list[str] = []

    def agree(intention: Intention) -> bool:
        shown.extend(task.title for task in intention.tasks)
        return True

    look = public.apply_plan(request, agree=agree, say=lambda line, _: said.append(line))
    assert look is not None
    assert look.good
    assert len(shown) == 4
    assert said[0] == f"[1/4] {shown[0]}"
    with pytest.raises(public.GpolicyError, match="this plan was applied before"):
        public.apply_plan(request, agree=lambda _: True)
    back = public.apply_plan(replace(request, rollback=True), agree=lambda _: True)
    assert back is not None
    assert back.good
    assert bench.server.ganeti.content() == before
