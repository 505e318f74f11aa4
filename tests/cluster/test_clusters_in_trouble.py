"""Many clusters in one run, some in trouble: one dead, one slow, one with a wrong password, one with another name."""

from __future__ import annotations

import json
import shutil
import socket
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import jsonschema
import pytest

from gpolicy.fleet import workers
from tests.cli.command_line import Done, gpolicy
from tests.cluster import rapi_server, recorded

ROOT = Path(__file__).resolve().parents[2]
CLUSTER = "full"
NAMES = ["well", "dead", "slow", "other", "wrong"]
PASSWORD = "a password"  # noqa: S105 (of this test)


@dataclass
class Fleet:
    """A repository with the settings of several clusters, and where each is.

    The servers are threads of this process, and gpolicy's own workers copies of it: one that is copied while a server
    is inside of OpenSSL may wait there for ever. Those are `hung`, and gpolicy is asked again. (Where gpolicy runs by
    itself, there are no such threads.)
    """

    directory: Path
    hung: list[int] = field(default_factory=list)

    def gpolicy(self, *words: str, env: dict[str, str] | None = None) -> Done:
        for _ in range(3):
            self.hung.clear()
            done = gpolicy(*words, env=env, cwd=self.directory)
            if not self.hung:
                break
        assert PASSWORD not in done.stdout + done.stderr
        return done


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory, ganeti_certificate: Path) -> Iterator[Fleet]:
    tmp_path = tmp_path_factory.mktemp("fleet")
    here = Fleet(tmp_path)
    shutil.copy(recorded.path(CLUSTER, "config.data"), tmp_path / "config.data")
    adopted = here.gpolicy("adopt", "--state", "config:config.data", "--save", "well")
    assert adopted.returncode == 0, adopted.stderr
    for name in ("dead", "slow", "wrong", "other"):
        shutil.copytree(tmp_path / "well", tmp_path / name)
    cluster = tmp_path / "other" / "cluster.yaml"
    declared = recorded.load(CLUSTER, "rapi-info.json")["name"]
    cluster.write_text(cluster.read_text().replace(f"name: {declared}", "name: another.example.org"))
    with (
        rapi_server.serve(CLUSTER, ganeti_certificate) as well,
        rapi_server.serve(CLUSTER, ganeti_certificate) as wrong,
        socket.create_server(("127.0.0.1", 0)) as slow,  # takes connections, and says nothing
        socket.create_server(("127.0.0.1", 0)) as dead,
    ):
        wrong.password = "another one"  # noqa: S105
        wrong.reads_need_password = well.reads_need_password = True
        places = {"well": well.port, "dead": dead.getsockname()[1], "slow": slow.getsockname()[1], "other": well.port}
        dead.close()
        tables = ""
        for name, port in {**places, "wrong": wrong.port}.items():
            tables += (
                f'[clusters.{name}]\npolicy = "{name}"\nstate = "rapi://127.0.0.1:{port}"\n'
                f'ca = "{ganeti_certificate}"\ncredentials = "environment:{"BAD" if name == "wrong" else "GOOD"}"\n'
                f'labels = {{stage = "{"canary" if name == "well" else "prod"}"}}\n'
            )
        (tmp_path / "gpolicy.toml").write_text(tables)
        yield here


ENVIRONMENT = {
    "GPOLICY_RAPI_USER_GOOD": "tool",
    "GPOLICY_RAPI_PASSWORD_GOOD": PASSWORD,
    "GPOLICY_RAPI_HOSTS_GOOD": "127.*",
    "GPOLICY_RAPI_USER_BAD": "tool",
    "GPOLICY_RAPI_PASSWORD_BAD": "not it",
    "GPOLICY_RAPI_HOSTS_BAD": "127.0.0.1",
}
PLAN = ("plan", "--no-impact", "--timeout", "20")
_HANGS = 30.0  # seconds


@pytest.fixture
def soon_late(monkeypatch: pytest.MonkeyPatch, fleet: Fleet) -> None:
    """The time that a cluster has is over at once for the slow one, and lasts for the others, unless one hangs."""
    slow = NAMES.index("slow")

    def age(worker: workers._Worker[object]) -> float:
        if worker.number != slow and time.monotonic() - worker._began < _HANGS:
            return 0.0
        fleet.hung += [] if worker.number == slow else [worker.number]
        return 1000.0

    monkeypatch.setattr(workers._Worker, "age", property(age))


@pytest.mark.usefixtures("soon_late")
def test_the_report_is_right_about_each(fleet: Fleet) -> None:
    done = fleet.gpolicy(*PLAN, "--all", "--format", "json", "--save", "plans", env=ENVIRONMENT)
    assert done.returncode == 3
    data = json.loads(done.stdout)
    jsonschema.validate(data, json.loads((ROOT / "schemas" / "output" / "fleet.json").read_text()))
    found = {item["name"]: item for item in data["clusters"]}
    assert list(found) == NAMES
    assert {name: item["exit_code"] for name, item in found.items()} == {
        "well": 0, "dead": 3, "slow": 3, "other": 1, "wrong": 3,
    }  # fmt: skip
    assert found["well"]["report"]["changes"] == []
    assert "Connection refused" in found["dead"]["error"]
    assert found["slow"]["error"] == "did not end within 20 seconds"
    assert "401" in found["wrong"]["error"]
    failed = [guard["name"] for guard in found["other"]["report"]["guards"] if not guard["ok"]]
    assert failed == ["right-cluster"]
    assert data["summary"]["could_not_run"] == ["dead", "slow", "wrong"]
    assert data["summary"]["findings"] == ["other"]
    assert list((fleet.directory / "plans").iterdir()) == []  # nothing changes


@pytest.mark.usefixtures("soon_late")
def test_text_markdown_and_pages(fleet: Fleet) -> None:
    done = fleet.gpolicy(*PLAN, "--all", "--details", "--pages", "pages", env=ENVIRONMENT)
    assert done.returncode == 3
    assert (
        "3 could not be looked at: dead, slow, wrong; 1 has a problem: other; 1 is known in part: well" in done.stdout
    )
    assert "dead: 127.0.0.1:" in done.stdout
    told = [line.split()[1] for line in done.stderr.splitlines() if "/5 " in line]
    assert sorted(told) == ["dead", "other", "slow", "well", "wrong"]
    assert sorted(path.name for path in (fleet.directory / "pages").iterdir()) == [
        "index.html", "other.html", "well.html",
    ]  # fmt: skip
    index = (fleet.directory / "pages" / "index.html").read_text()
    assert 'href="well.html"' in index
    assert 'href="dead.html"' not in index
    done = fleet.gpolicy(*PLAN, "--all", "--format", "markdown", "--budget", "9000", env=ENVIRONMENT)
    assert len(done.stdout.encode()) <= 9000
    assert done.stdout.startswith("<!-- gpolicy plan -->\n### Plan of 5 clusters\n")
    assert done.stdout.count("<!-- gpolicy") == 1
    assert "`right-cluster`" in done.stdout


def test_one_by_its_name_or_label(fleet: Fleet) -> None:
    for words in (("--state", "well"), ("well",), ("--label", "stage=canary"), ("--label", "name=well")):
        done = fleet.gpolicy("drift", *words, env=ENVIRONMENT)
        assert done.returncode == 0, (words, done.stderr)


@pytest.mark.slow
def test_the_list_says_who_answers(fleet: Fleet) -> None:
    done = fleet.gpolicy("clusters", "--format", "json", "--timeout", "5", env=ENVIRONMENT)
    assert done.returncode == 3
    data = json.loads(done.stdout)
    jsonschema.validate(data, json.loads((ROOT / "schemas" / "output" / "clusters.json").read_text()))
    assert {item["name"]: item["error"] is None for item in data["clusters"]} == {
        "well": True, "dead": False, "slow": False, "other": True, "wrong": False,
    }  # fmt: skip
    assert fleet.gpolicy("clusters", "--offline").returncode == 0


def test_snapshots_of_all_are_kept_and_read(fleet: Fleet) -> None:
    for _ in range(2):
        done = fleet.gpolicy("snapshot", "--label", "stage=canary", "--save", "kept", "--keep", "1", env=ENVIRONMENT)
        assert done.returncode == 0, done.stderr
    assert len(list((fleet.directory / "kept" / "well").iterdir())) == 1
    done = fleet.gpolicy("plan", "--label", "stage=canary", "--snapshots", "kept", "--no-impact")
    assert done.returncode == 0, done.stderr
    done = fleet.gpolicy("plan", "--all", "--snapshots", "kept", "--no-impact")
    assert done.returncode == 3
    assert "4 could not be looked at: dead, slow, other, wrong; 1 is known in part: well" in done.stdout
    assert "no snapshot of the cluster dead" in done.stdout


def test_what_a_verb_says_aside_is_a_note(tmp_path: Path) -> None:
    """config.data has no measurements, which snapshot says."""
    shutil.copy(recorded.path(CLUSTER, "config.data"), tmp_path)
    alone = gpolicy("snapshot", "--state", "config:config.data", "--save", "alone.json", cwd=tmp_path)
    aside = [line.removeprefix("gpolicy: ") for line in alone.stderr.splitlines()]
    (tmp_path / "gpolicy.toml").write_text('[clusters.kept]\nstate = "config:config.data"\n')
    together = gpolicy("snapshot", "--all", "--save", "together", cwd=tmp_path)
    assert together.returncode == 0, together.stderr
    assert aside
    said = " ".join(together.stdout.split())
    assert all(f"kept: {line}" in said for line in aside)


def test_a_password_goes_to_no_other_host(fleet: Fleet) -> None:
    """Whoever changes the settings file can name any host, and gets nothing."""
    environment = {**ENVIRONMENT, "GPOLICY_RAPI_HOSTS_GOOD": "*.example.org"}
    done = fleet.gpolicy("drift", "--state", "well", env=environment)
    assert done.returncode == 3
    assert "GPOLICY_RAPI_HOSTS_GOOD does not list 127.0.0.1" in done.stderr
    done = fleet.gpolicy("drift", "--state", "well")
    assert "GPOLICY_RAPI_USER_GOOD is not set" in done.stderr
    done = fleet.gpolicy("drift", "--state", "well", "--rapi-credentials", "/dev/null")
    assert "--rapi-credentials is about one address" in done.stderr


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("plan", "--all", "--label", "stage=canary"), "--all and --label exclude one another"),
        (("plan", "--shard", "1/2"), "--shard is for several clusters"),
        (("plan", "--all", "--state", "local:"), "--state is about one address"),
        (("plan", "well", "--all"), "well: not the directory of a settings file"),
        (("evacuate", "node1", "--policy", "well", "--all"), "well: not the directory of a settings file"),
        (("plan", "--all", "--format", "html"), "say --pages DIR"),
        (("plan", "--all", "--format", "github"), "--format github is for one cluster"),
        (("check", "--all", "--fix"), "are for named policies"),
        (("drift", "--all", "-o", "x"), "--output is for one cluster"),
        (("snapshot", "--state", "well", "--save", "x", "--keep", "1"), "--keep is for several clusters"),
        (("plan", "--state", "wel"), "Did you mean `well`?"),
        (("plan",), "which cluster?"),
    ],
)
def test_words_that_do_not_go_together(fleet: Fleet, words: tuple[str, ...], message: str) -> None:
    done = fleet.gpolicy(*words, env=ENVIRONMENT)
    assert done.returncode == 3
    assert message in done.stderr
