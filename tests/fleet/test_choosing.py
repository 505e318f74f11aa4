"""Which clusters a run is about."""

from __future__ import annotations

import subprocess
import time
from pathlib import Path

import pytest

from gpolicy.errors import InputError, RequestError
from gpolicy.fleet.choosing import (
    changed_clusters,
    labelled_clusters,
    newest_snapshot,
    prune_snapshots,
    sharded_clusters,
    snapshot_file,
    snapshots_of,
)
from gpolicy.fleet.named_clusters import NamedCluster, named_clusters
from gpolicy.policy.settings_file import settings_file

NAMES = ("ham", "ber", "muc", "vie", "zrh")


def git(directory: Path, *words: str) -> None:
    identity = ("-c", "user.name=t", "-c", "user.email=t@example.org", "-c", "init.defaultBranch=main")
    subprocess.run(["git", *identity, *words], cwd=directory, check=True, capture_output=True)


@pytest.fixture
def clusters(tmp_path: Path) -> list[NamedCluster]:
    """Five clusters in a directory; those but the last extend one base."""
    base = "gpolicy: v1\nkind: Cluster\nname: base\ntemplate: true\nipolicy: {vcpu-ratio: 2}\n"
    (tmp_path / "base.yaml").write_text(base)
    tables = ""
    for name in NAMES:
        (tmp_path / name).mkdir()
        extends = "" if name == "zrh" else "extends: ../base.yaml\n"
        text = f"gpolicy: v1\nkind: Cluster\nname: {name}.example.org\nganeti_version: '3.0'\n{extends}"
        (tmp_path / name / "cluster.yaml").write_text(text)
        stage = "canary" if name == "ham" else "prod"
        tables += f'[clusters.{name}]\npolicy = "{name}"\nstate = "ssh://{name}"\nlabels = {{stage = "{stage}"}}\n'
    (tmp_path / "gpolicy.toml").write_text(tables)
    return list(named_clusters(settings_file(tmp_path)).values())


def names(clusters: list[NamedCluster]) -> str:
    return " ".join(cluster.name for cluster in clusters)


@pytest.mark.parametrize(
    ("labels", "expected"),
    [
        ([], "ham ber muc vie zrh"),
        (["stage=canary"], "ham"),
        (["name=ham", "name=vie"], "ham vie"),
        (["name=*e*", "stage=prod"], "ber vie"),
    ],
)
def test_labels(clusters: list[NamedCluster], labels: list[str], expected: str) -> None:
    assert names(labelled_clusters(clusters, labels)) == expected


@pytest.mark.parametrize(
    ("label", "message", "hint"),
    [
        ("stage", "is not KEY=VALUE", "for example"),
        ("stag=prod", "no cluster has a label 'stag'", "Did you mean `stage`?"),
        ("stage=prot", "no cluster has stage=prot", "Did you mean `prod`?"),
    ],
)
def test_a_label_that_nobody_has(clusters: list[NamedCluster], label: str, message: str, hint: str) -> None:
    with pytest.raises(RequestError) as caught:
        labelled_clusters(clusters, [label])
    assert message in caught.value.message
    assert hint in (caught.value.hint or "")


@pytest.mark.parametrize("parts", [1, 2, 3, 5, 7])
def test_shards_together_are_all(clusters: list[NamedCluster], parts: int) -> None:
    found = [sharded_clusters(clusters, f"{number}/{parts}") for number in range(1, parts + 1)]
    assert sorted(name for part in found for name in names(part).split()) == sorted(NAMES)
    assert max(map(len, found)) - min(map(len, found)) <= 1


@pytest.mark.parametrize("shard", ["0/2", "3/2", "1", "1/0", "a/b", "-1/2", "1/2/3"])
def test_no_shard(clusters: list[NamedCluster], shard: str) -> None:
    with pytest.raises(RequestError, match="is not N/M"):
        sharded_clusters(clusters, shard)


class TestChanged:
    @pytest.fixture(autouse=True)
    def repository(self, clusters: list[NamedCluster], tmp_path: Path) -> None:
        assert len(clusters) == len(list(tmp_path.glob("*/cluster.yaml")))
        git(tmp_path, "init")
        git(tmp_path, "add", ".")
        git(tmp_path, "commit", "-m", "all")

    def changed(self, clusters: list[NamedCluster], reference: str = "HEAD") -> str:
        return names(changed_clusters(clusters, reference))

    def test_nothing(self, clusters: list[NamedCluster]) -> None:
        assert self.changed(clusters) == ""

    def test_a_file_of_the_policy(self, clusters: list[NamedCluster], tmp_path: Path) -> None:
        file = tmp_path / "ber" / "cluster.yaml"
        file.write_text(file.read_text() + "# more\n")
        assert self.changed(clusters) == "ber"

    def test_a_new_and_a_removed_file(self, clusters: list[NamedCluster], tmp_path: Path) -> None:
        (tmp_path / "muc" / "group.yaml").write_text("gpolicy: v1\nkind: NodeGroup\nname: g\n")
        (tmp_path / "zrh" / "cluster.yaml").unlink()
        assert self.changed(clusters) == "muc zrh"

    def test_what_they_extend(self, clusters: list[NamedCluster], tmp_path: Path) -> None:
        file = tmp_path / "base.yaml"
        file.write_text(file.read_text().replace("vcpu-ratio: 2", "vcpu-ratio: 3"))
        assert self.changed(clusters) == "ham ber muc vie"

    def test_a_removed_base(self, clusters: list[NamedCluster], tmp_path: Path) -> None:
        (tmp_path / "base.yaml").unlink()
        assert self.changed(clusters) == "ham ber muc vie"

    def test_the_settings_file_is_of_all(self, clusters: list[NamedCluster], tmp_path: Path) -> None:
        file = tmp_path / "gpolicy.toml"
        file.write_text(file.read_text() + "# more\n")
        assert self.changed(clusters) == " ".join(NAMES)

    def test_only_this_side_of_a_branch_counts(self, clusters: list[NamedCluster], tmp_path: Path) -> None:
        git(tmp_path, "switch", "-c", "side")
        (tmp_path / "ber" / "note.yaml").write_text("# mine\n")
        git(tmp_path, "add", ".")
        git(tmp_path, "commit", "-m", "mine")
        git(tmp_path, "switch", "main")
        (tmp_path / "muc" / "note.yaml").write_text("# theirs\n")
        git(tmp_path, "add", ".")
        git(tmp_path, "commit", "-m", "theirs")
        git(tmp_path, "switch", "side")
        assert self.changed(clusters, "main") == "ber"

    @pytest.mark.parametrize("reference", ["nosuch", "HEAD~9", "--output=x"])
    def test_an_unknown_commit(self, clusters: list[NamedCluster], reference: str, tmp_path: Path) -> None:
        with pytest.raises((InputError, RequestError)):
            self.changed(clusters, reference)
        assert not (tmp_path / "x").exists()


def test_the_newest_counts_and_only_old_ones_go(tmp_path: Path) -> None:
    files = [snapshot_file(tmp_path, "ham", time.gmtime(86_400 * day)) for day in range(5)]
    for file in (*files, tmp_path / "ham" / "mine.json", tmp_path / "ham" / "19700101T000000Z.json.bak"):
        file.touch()
    assert [file.name for file in files][:2] == ["19700101T000000Z.json", "19700102T000000Z.json"]
    assert newest_snapshot(tmp_path, "ham") == files[-1]
    prune_snapshots(tmp_path, "ham", 2)
    assert snapshots_of(tmp_path, "ham") == files[3:]
    assert max(path.name for path in (tmp_path / "ham").iterdir()) == "mine.json"
    prune_snapshots(tmp_path, "ham", 2)
    assert snapshots_of(tmp_path, "ham") == files[3:]


def test_a_snapshot_of_a_time_to_come_is_named_and_none_is_written_that_would_count_as_older(tmp_path: Path) -> None:
    later = snapshot_file(tmp_path, "ham", time.gmtime(2**32))
    later.touch()
    with pytest.raises(InputError, match=r"Z\.json: is of a time to come, so no new snapshot") as caught:
        snapshot_file(tmp_path, "ham", time.gmtime(86_400))
    assert "correct the clock" in (caught.value.hint or "")
    assert snapshot_file(tmp_path, "ham", time.gmtime(2**32)) == later


def test_no_snapshot_is_an_error_that_says_how_to_get_one(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no snapshot of the cluster ham") as caught:
        newest_snapshot(tmp_path, "ham")
    assert "gpolicy snapshot --all --save" in (caught.value.hint or "")
