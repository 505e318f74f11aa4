"""The shell script of a plan, run by real shells with programs that record their arguments."""

from __future__ import annotations

import os
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from gpolicy.errors import ExitCode, GpolicyError
from gpolicy.plan.built_in_guards import GuardResult
from gpolicy.plan.effects import Effect
from gpolicy.plan.plan import Plan, UnsafePlanError
from gpolicy.plan.step import Inverse, PlannedCommand, Step, StepWave
from gpolicy.render.script import render_script, script_environment

SHELLS = [shell for shell in ("sh", "dash", "bash", "busybox") if shutil.which(shell)]
HOSTILE = [
    "a b",
    "o'neil",
    '"',
    "$(touch pwned)",
    "`touch pwned`",
    "-x",
    "--",
    "*",
    "\\",
    "a\nb",
    "",
    "#",
    ";",
    "ü",
    "%s",
]
STUB = """#!/bin/sh
if [ "$1" = info ]; then echo "Cluster name: ${CLUSTER}"; echo "Cluster UUID: uuid-1"; exit 0; fi
{ printf '%s\\0' "${0##*/}" "$@"; printf '\\n\\0'; } >> "$LOG"
cat > /dev/null
[ "$2" != "$FAILS" ] || exit 7
"""


def plan(*argvs: tuple[str, ...], **more: Any) -> Plan:
    steps = tuple(
        Step(
            id=str(number),
            wave=StepWave.GROUPS,
            object="node/x",
            title=f"do {' '.join(argv)}",
            command=PlannedCommand(argv=argv),
            inverse=Inverse((PlannedCommand(argv=(argv[0], "modify", "undo", argv[-1])),)),
        )
        for number, argv in enumerate(argvs, start=1)
    )
    values: dict[str, Any] = {
        "cluster": "c'1", "cluster_uuid": "uuid-1", "version": "3.0", "source": "",
        "policy_digest": "p", "state_digest": "s",
    }  # fmt: skip
    return Plan(**{**values, "steps": steps, **more})


def commands(log: Path) -> list[list[str]]:
    if not log.exists():
        return []
    calls = log.read_bytes().decode().split("\n\0")[:-1]
    return [call.split("\0")[:-1] for call in calls]


def run(
    tmp_path: Path, script: str, *arguments: str, shell: str = "sh", cluster: str = "c'1", fails: str = "none"
) -> tuple[subprocess.CompletedProcess[str], list[list[str]]]:
    programs = tmp_path / "bin"
    programs.mkdir(exist_ok=True)
    for name in ("gnt-cluster", "gnt-group", "gnt-node"):
        (programs / name).write_text(STUB)
        (programs / name).chmod(0o755)
    file = tmp_path / "script.sh"
    file.write_text(script, encoding="utf-8")
    log = tmp_path / "log"
    log.unlink(missing_ok=True)
    environment = {"PATH": f"{programs}:{os.environ['PATH']}", "LOG": str(log), "CLUSTER": cluster, "FAILS": fails}
    call = [shell, *(["sh"] if shell == "busybox" else []), str(file), *arguments]
    done = subprocess.run(call, env=environment, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=20)
    return done, commands(log)


@pytest.mark.parametrize("shell", SHELLS)
def test_hostile_names_arrive_unchanged(tmp_path: Path, shell: str) -> None:
    argvs = [("gnt-group", "modify", f"--x={word}", word) for word in HOSTILE]
    done, called = run(tmp_path, render_script(plan(*argvs)), shell=shell)
    assert (done.returncode, done.stderr) == (0, "")
    assert called == [list(argv) for argv in argvs]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["bin", "log", "script.sh"]


@pytest.mark.parametrize("shell", SHELLS)
def test_the_script_is_sound_shell(tmp_path: Path, shell: str) -> None:
    file = tmp_path / "script.sh"
    for script in (render_script(plan()), render_script(plan(*(("gnt-node", "modify", word) for word in HOSTILE)))):
        file.write_text(script, encoding="utf-8")
        call = [shell, *(["sh"] if shell == "busybox" else []), "-n", str(file)]
        done = subprocess.run(call, capture_output=True, text=True, check=False)
        assert (done.returncode, done.stderr) == (0, "")


def test_the_script_stops_at_the_first_failure_with_its_exit_code(tmp_path: Path) -> None:
    script = render_script(plan(("gnt-node", "modify", "a"), ("gnt-node", "modify", "b"), ("gnt-node", "modify", "c")))
    done, called = run(tmp_path, script, fails="b")
    assert done.returncode == 7
    assert [call[-1] for call in called] == ["a", "b"]
    assert "step 2 failed (exit code 7)" in done.stderr


@pytest.mark.parametrize("cluster", ["other", "", "c'1 "])
def test_the_script_refuses_another_cluster(tmp_path: Path, cluster: str) -> None:
    done, called = run(tmp_path, render_script(plan(("gnt-node", "modify", "a"))), cluster=cluster)
    assert (done.returncode, called) == (1, [])
    assert "nothing was done" in done.stderr


def test_the_script_refuses_another_cluster_of_the_same_name(tmp_path: Path) -> None:
    done, called = run(tmp_path, render_script(plan(("gnt-node", "modify", "a"), cluster_uuid="uuid-2")))
    assert (done.returncode, called) == (1, [])
    assert "with the UUID uuid-2, but this one has the UUID uuid-1: nothing was done" in done.stderr
    _, called = run(tmp_path, render_script(plan(("gnt-node", "modify", "a"), cluster_uuid=None)))
    assert len(called) == 1


def test_without_ganeti_nothing_is_done(tmp_path: Path) -> None:
    file = tmp_path / "script.sh"
    file.write_text(render_script(plan(("gnt-node", "modify", "a"))))
    shell = shutil.which("sh")
    assert shell is not None
    environment = {"PATH": _without_ganeti(tmp_path)}
    done = subprocess.run([shell, str(file)], capture_output=True, text=True, check=False, env=environment)
    assert done.returncode == 1
    assert "this host belongs to no cluster: nothing was done" in done.stderr


def _without_ganeti(tmp_path: Path) -> str:
    programs = tmp_path / "only"
    programs.mkdir()
    sed = shutil.which("sed")
    assert sed is not None
    (programs / "sed").symlink_to(sed)
    return str(programs)


def test_a_dry_run_runs_nothing(tmp_path: Path) -> None:
    script = render_script(plan(("gnt-node", "modify", "a b")))
    done, called = run(tmp_path, script, "-n", cluster="other")
    assert (done.returncode, called) == (0, [])
    assert "a b" in done.stdout
    done, called = run(tmp_path, script, "--force")
    assert (done.returncode, called) == (2, [])


def test_a_rollback_undoes_the_last_step_first_and_says_what_it_cannot(tmp_path: Path) -> None:
    made = plan(("gnt-node", "modify", "a"), ("gnt-node", "modify", "b"))
    lost = replace(made.steps[0], id="3", title="x\nreboot", inverse=Inverse((), ("y\nreboot",)))
    script = render_script(plan(steps=(*made.steps, lost)), rollback=True)
    done, called = run(tmp_path, script)
    assert done.returncode == 0
    assert called == [["gnt-node", "modify", "undo", "b"], ["gnt-node", "modify", "undo", "a"]]
    assert "# NOT RESTORED: step 3: y?reboot\n" in script


def test_a_script_goes_on_where_it_stopped_and_undoes_only_what_was_done(tmp_path: Path) -> None:
    made = plan(("gnt-node", "modify", "a"), ("gnt-node", "modify", "b"), ("gnt-node", "modify", "c"))
    _, called = run(tmp_path, render_script(made), "--from", "2")
    assert called == [["gnt-node", "modify", "b"], ["gnt-node", "modify", "c"]]
    _, called = run(tmp_path, render_script(made, rollback=True), "--last", "2")
    assert called == [["gnt-node", "modify", "undo", "b"], ["gnt-node", "modify", "undo", "a"]]
    for wrong in (("--from", "x"), ("--from",), ("--last", "1")):
        done, called = run(tmp_path, render_script(made), *wrong)
        assert (done.returncode, called) == (2, [])


def test_the_candidate_pool_is_undone_last(tmp_path: Path) -> None:
    made = plan(("gnt-node", "modify", "a"), ("gnt-node", "modify", "b"))
    pool = replace(made.steps[1], wave=StepWave.POOL)
    _, called = run(tmp_path, render_script(plan(steps=(made.steps[0], pool)), rollback=True))
    assert called == [["gnt-node", "modify", "undo", "a"], ["gnt-node", "modify", "undo", "b"]]


def test_an_empty_plan_says_that_nothing_is_to_do(tmp_path: Path) -> None:
    done, called = run(tmp_path, render_script(plan()))
    assert (done.returncode, called, done.stdout) == (0, [], "nothing to do\n")


def test_an_unsafe_plan_is_refused_but_can_be_undone() -> None:
    unsafe = plan(("gnt-node", "modify", "a"), guards=(GuardResult("disks-stay", False, "why"),))
    with pytest.raises(UnsafePlanError, match="disks-stay") as raised:
        render_script(unsafe)
    assert raised.value.exit_code is ExitCode.FINDINGS
    assert "undo" in render_script(unsafe, rollback=True)


def test_a_step_without_a_command_is_refused() -> None:
    step = replace(plan(("gnt-node",)).steps[0], command=PlannedCommand(argv=None))
    with pytest.raises(GpolicyError, match="RAPI only"):
        render_script(plan(steps=(step,)))


def test_titles_cannot_move_the_cursor(tmp_path: Path) -> None:
    step = replace(plan(("gnt-node", "modify", "a")).steps[0], title="\x1b[2Jx")
    done, _ = run(tmp_path, render_script(plan(steps=(step,))))
    assert "\x1b" not in done.stdout


def test_each_step_shows_the_change_of_each_value(tmp_path: Path) -> None:
    effects = (
        Effect("cluster", ("ipolicy", "vcpu-ratio"), 4.0, 7.0),
        Effect("cluster", ("hvparams", "kvm", "kvm_path"), "/usr/bin/kvm", "/bin/x\nreboot #"),
    )
    argv = ("gnt-cluster", "modify", "--x=1")
    back = PlannedCommand(argv=argv, effects=tuple(effect.reversed() for effect in effects))
    command = PlannedCommand(argv=argv, effects=effects)
    step = replace(plan(argv).steps[0], command=command, inverse=Inverse((back,)))
    script = render_script(plan(steps=(step,)))
    assert "#   cluster ipolicy.vcpu-ratio: 4 → 7\n" in script
    line = next(line for line in script.splitlines() if "kvm_path" in line)
    assert line == (
        '#   cluster hvparams.kvm.kvm_path: "/usr/bin/kvm" → "/bin/x\\nreboot #"'
        "  ! root on the nodes runs the program that this names"
    )
    assert "#   cluster ipolicy.vcpu-ratio: 7 → 4\n" in render_script(plan(steps=(step,)), rollback=True)
    assert [call[1:] for call in run(tmp_path, script)[1]] == [["modify", "--x=1"]]


def test_the_script_names_its_plan_and_who_signed_it() -> None:
    script = render_script(plan(digest="sha256:abc", signer="ci@example.org\nreboot"))
    assert "\n# plan    sha256:abc, signed by ci@example.org?reboot\n# policy  p\n" in script
    assert "\n# plan    sha256:abc\n# policy  p\n" in render_script(plan(digest="sha256:abc"))


def test_a_change_of_the_candidate_pool_is_tried_twice(tmp_path: Path) -> None:
    made = plan(("gnt-node", "modify", "a"), ("gnt-node", "modify", "b"))
    pool = replace(made.steps[1], wave=StepWave.POOL)
    done, called = run(tmp_path, render_script(plan(steps=(made.steps[0], pool))), fails="b")
    assert done.returncode == 7
    assert [call[-1] for call in called] == ["a", "b", "b"]


def test_a_script_says_first_what_it_does() -> None:
    lost = replace(plan(("gnt-node", "modify", "a")).steps[0], inverse=Inverse((), ("gone",)))
    script = render_script(plan(steps=(lost,)))
    assert script.startswith("#!/bin/sh\n# Carry out the plan for cluster c'1: 1 step\n#\n")
    assert "NOT RESTORED" not in script
    script = render_script(plan(steps=(lost,)), rollback=True)
    assert script.startswith("#!/bin/sh\n# Undo the plan for cluster c'1: 0 steps\n#\n")
    assert "NOT RESTORED" in script


def test_a_script_keeps_the_end_of_its_last_line() -> None:
    assert script_environment().from_string("fi\n").render() == "fi\n"
