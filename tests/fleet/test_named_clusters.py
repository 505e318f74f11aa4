"""Clusters that the settings file names."""

from __future__ import annotations

from pathlib import Path

import pytest

from gpolicy.errors import InputError
from gpolicy.fleet.named_clusters import (
    NamedCluster,
    RolloutSettings,
    RolloutWave,
    named_clusters,
    refuse_contradictions,
    rollout_settings,
    waves_of,
)
from gpolicy.policy.settings_file import named_settings_file, settings_file


def read(directory: Path, text: str) -> dict[str, NamedCluster]:
    path = directory / "gpolicy.toml"
    path.write_text(text)
    return named_clusters(settings_file(directory))


def read_checked(directory: Path, text: str) -> None:
    """Read as check does."""
    read(directory, text)
    file = settings_file(directory)
    assert file is not None
    refuse_contradictions(file)


def test_everything_that_a_table_may_say(tmp_path: Path) -> None:
    found = read(
        tmp_path,
        '[clusters.ham]\npolicy = "clusters/ham"\nstate = "rapi://ham.example.org"\ndestination = "ssh://ham"\n'
        'ca = "ca/ham.pem"\ncredentials = "netrc:~/ham.netrc"\nlabels = {stage = "canary"}\n'
        '[clusters.ber]\nstate = "ssh://ber"\n[clusters.kept]\nstate = "snapshot:kept.json"\n',
    )
    assert list(found) == ["ham", "ber", "kept"]
    ham, ber, kept = found.values()
    assert (ham.policy, ham.authority) == (tmp_path / "clusters" / "ham", tmp_path / "ca" / "ham.pem")
    assert (ham.destination, ber.destination, kept.destination) == ("ssh://ham", "ssh://ber", None)
    assert (ham.login, ber.login) == (f"netrc:{Path('~/ham.netrc').expanduser()}", "netrc")
    assert (dict(ham.labels), dict(ber.labels)) == ({"name": "ham", "stage": "canary"}, {"name": "ber"})
    assert (ber.policy, kept.state) == (None, f"snapshot:{tmp_path / 'kept.json'}")


def test_no_file_and_no_table_name_no_cluster(tmp_path: Path) -> None:
    assert named_clusters(settings_file(tmp_path)) == {}
    assert read(tmp_path, "[check]\n") == {}


@pytest.mark.parametrize(
    ("table", "message", "line"),
    [
        ('policy = "ham"', "clusters.ham: has no `state`", 1),
        ('state = "ham.json"', "no address of a cluster's state", 2),
        ('state = "rap://ham"', "no such source: 'rap'", 2),
        ('state = "local:/tmp/evil"', "`local:` has no path in a settings file", 2),
        ('state = "snapshot:/etc/passwd"', "leads out of", 2),
        ('state = "snapshot:../../kept.json"', "leads out of", 2),
        ('state = "ssh://ham"\npolicy = "/etc"', "leads out of", 3),
        ('state = "rapi:/ham"', "not a host and port", 2),
        ('state = "rapi://ham:508000"', "not a host and port", 2),
        ('state = "ssh://ham:22:22"', "not a host", 2),
        ('state = "ssh://ham"\ndestination = "rapi://ham/2"', "not a host and port", 3),
        ('state = "ssh://ham"\npolicy = 1', "must be a text, not 1", 3),
        ('state = "ssh://ham"\ndestination = "config:x"', "no destination", 3),
        ('state = "ssh://ham"\ndestination = "local:/tmp"', "no destination", 3),
        ('state = "ssh://ham"\ncredentials = "hush-33"', "does not say where a password is", 3),
        ('state = "ssh://ham"\ncredentials = "environment:path"', "does not say where a password is", 3),
        ('state = "ssh://ham"\npasword = "x"', "unknown key in [clusters.ham]", 3),
        ('state = "ssh://ham"\nlabels = ["a"]', "must be a table, not a list", 3),
        ('state = "ssh://ham"\nlabels = {name = "b"}', "a label cannot be called 'name'", 3),
        ('state = "ssh://ham"\nlabels = {a = "b,c"}', "a label cannot be 'b,c'", 3),
        ('state = "ssh://ham\\u0007"', "must be a text", 2),
    ],
)
def test_what_a_table_may_not_say(tmp_path: Path, table: str, message: str, line: int) -> None:
    with pytest.raises(InputError) as caught:
        read(tmp_path, f"[clusters.ham]\n{table}\n")
    assert message in caught.value.message
    assert caught.value.message.startswith(f"{tmp_path / 'gpolicy.toml'}:{line}: ")
    assert caught.value.hint


def test_a_password_in_an_address_is_refused_and_not_shown(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="must not contain a user or password") as caught:
        read(tmp_path, '[clusters.ham]\nstate = "rapi://me:hush-33@ham"\n')
    assert "hush" not in caught.value.message


@pytest.mark.parametrize(
    ("ber", "message"),
    [
        ('state = "ssh://ham"', "5: clusters.ber.state: 'ssh://ham' is the address of the cluster ham"),
        (
            'state = "ssh://ber"\ndestination = "ssh://ham"',
            "6: clusters.ber.destination: 'ssh://ham' is the",
        ),
        (
            'state = "ssh://ber"\ndestination = "rapi://HAM"',
            "6: clusters.ber.destination: 'rapi://HAM' is the address of the cluster ham",
        ),
        ('state = "ssh://ber"\nca = "ca/ber.pem"', "6: clusters.ber.ca: there is no such file"),
        (
            'state = "ssh://ber"\nlabels = {Stage = "prod"}',
            "6: clusters.ber.labels.Stage: another cluster has",
        ),
    ],
)
def test_clusters_do_not_share_an_address_or_almost_a_label(tmp_path: Path, ber: str, message: str) -> None:
    with pytest.raises(InputError) as caught:
        read_checked(
            tmp_path, f'[clusters.ham]\nstate = "ssh://ham"\nlabels = {{stage = "prod"}}\n[clusters.ber]\n{ber}\n'
        )
    assert message in caught.value.message


def test_a_host_with_a_port_leads_to_several_clusters(tmp_path: Path) -> None:
    for host in ("gate", "127.0.0.1"):
        tables = [f'[clusters.c{port}]\nstate = "rapi://{host}:{port}"\n' for port in (5081, 5082)]
        read_checked(tmp_path, "".join(tables))


@pytest.mark.parametrize("name", ["a:b", "-a", "", "a/b", "ä", "a" * 101])
def test_a_name_is_also_the_name_of_a_file(tmp_path: Path, name: str) -> None:
    with pytest.raises(InputError, match="a cluster cannot be called"):
        read(tmp_path, f'[clusters."{name}"]\nstate = "local:"\n')


def test_clusters_is_a_table_of_tables(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="must be a table"):
        read(tmp_path, 'clusters = ["a"]\n')
    with pytest.raises(InputError, match="must be a table"):
        read(tmp_path, 'clusters = {a = "ssh://a"}\n')


def test_a_project_file_may_name_them_too(tmp_path: Path) -> None:
    path = tmp_path / "pyproject.toml"
    path.write_text('[tool.gpolicy.clusters.ham]\nstate = "local:"\n')
    assert list(named_clusters(named_settings_file(path))) == ["ham"]


CLUSTERS = (
    '[clusters.ham]\nstate = "ssh://ham"\nlabels = {stage = "canary", site = "north"}\n'
    '[clusters.ber]\nstate = "ssh://ber"\nlabels = {stage = "prod", site = "north"}\n'
    '[clusters.muc]\nstate = "ssh://muc"\n'
)


def read_rollout(directory: Path, table: str) -> tuple[list[NamedCluster], RolloutSettings | None]:
    (directory / "gpolicy.toml").write_text(f"{CLUSTERS}{table}")
    file = settings_file(directory)
    assert file is not None
    clusters = list(named_clusters(file).values())
    return clusters, rollout_settings(file, clusters)


def test_a_cluster_is_in_the_first_wave_that_names_it(tmp_path: Path) -> None:
    clusters, found = read_rollout(tmp_path, '[rollout]\nwaves = ["stage=can*", "site=north", "name=*"]\npause = 1.5\n')
    assert found is not None
    assert found.pause == 1.5
    assert waves_of(clusters, found) == (
        RolloutWave("stage=can*", ("ham",)), RolloutWave("site=north", ("ber",)), RolloutWave("name=*", ("muc",)),
    )  # fmt: skip
    assert waves_of(clusters[1:], found)[0].label == "site=north"  # no wave is empty


def test_a_last_wave_for_clusters_to_come_may_be_empty(tmp_path: Path) -> None:
    clusters, found = read_rollout(
        tmp_path, '[rollout]\nwaves = ["stage=canary", "site=north", "name=muc", "name=*"]\n'
    )
    assert found is not None
    assert [wave.label for wave in waves_of(clusters, found)] == ["stage=canary", "site=north", "name=muc"]


def test_a_cluster_that_no_wave_names_is_an_error(tmp_path: Path) -> None:
    clusters, found = read_rollout(tmp_path, '[rollout]\nwaves = ["site=north"]\n')
    assert found is not None
    with pytest.raises(InputError, match=r"10: rollout.waves: has no label of: muc"):
        waves_of(clusters, found)
    assert waves_of(clusters[:2], found) == (RolloutWave("site=north", ("ham", "ber")),)
    assert read_rollout(tmp_path, "") == (clusters, None)


@pytest.mark.parametrize(
    ("table", "message", "line"),
    [
        ("pause = 5", "has no `waves`", 9),
        ("waves = []", "must be a list of labels", 10),
        ('waves = "name=*"', "must be a list of labels, not 'name=*'", 10),
        ("waves = [1]", "a label must be a text, not 1", 10),
        ('waves = [\n  "name=*",\n  "stage"]', "'stage' is not KEY=VALUE", 12),
        ('waves = ["name=*", "name=*"]', "'name=*' is there twice", 10),
        ('waves = ["stage=canari"]', "no cluster has the label 'stage=canari'", 10),
        ('waves = ["name=*", "stage=canary"]', "the wave 'stage=canary' is always empty: 'name=*' before it", 10),
        ('waves = ["name=*"]\npause = true', "must be a number of seconds, not true", 11),
        ('waves = ["name=*"]\npause = 600000', "must be a number of seconds, not 600000", 11),
        ('waves = ["name=*"]\npause = -1', "must be a number of seconds, not -1", 11),
        ('waves = ["name=*"]\npause = nan', "must be a number of seconds, not nan", 11),
        ('waves = ["name=*"]\nwave = 1', "unknown key in [rollout]", 11),
    ],
)
def test_what_the_table_may_not_say(tmp_path: Path, table: str, message: str, line: int) -> None:
    with pytest.raises(InputError) as caught:
        read_rollout(tmp_path, f"[rollout]\n{table}\n")
    assert message in caught.value.message
    assert caught.value.message.startswith(f"{tmp_path / 'gpolicy.toml'}:{line}: ")
    assert caught.value.hint
