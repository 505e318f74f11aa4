"""The waves of a roll-out in the settings file."""

from __future__ import annotations

from pathlib import Path

import pytest

from gpolicy.errors import InputError
from gpolicy.settings.named_clusters import (
    NamedCluster,
    RolloutSettings,
    RolloutWave,
    named_clusters,
    rollout_settings,
    waves_of,
)
from gpolicy.settings.settings_file import settings_file

CLUSTERS = (
    '[clusters.ham]\nstate = "ssh://ham"\nlabels = {stage = "canary", site = "north"}\n'
    '[clusters.ber]\nstate = "ssh://ber"\nlabels = {stage = "prod", site = "north"}\n'
    '[clusters.muc]\nstate = "ssh://muc"\n'
)


def read(directory: Path, table: str) -> tuple[list[NamedCluster], RolloutSettings | None]:
    (directory / "gpolicy.toml").write_text(f"{CLUSTERS}{table}")
    file = settings_file(directory)
    assert file is not None
    clusters = list(named_clusters(file).values())
    return clusters, rollout_settings(file, clusters)


def test_a_cluster_is_in_the_first_wave_that_names_it(tmp_path: Path) -> None:
    clusters, found = read(tmp_path, '[rollout]\nwaves = ["stage=can*", "site=north", "name=*"]\npause = 1.5\n')
    assert found is not None
    assert found.pause == 1.5
    assert waves_of(clusters, found) == (
        RolloutWave("stage=can*", ("ham",)), RolloutWave("site=north", ("ber",)), RolloutWave("name=*", ("muc",)),
    )  # fmt: skip
    assert waves_of(clusters[1:], found)[0].label == "site=north"  # no wave is empty


def test_a_last_wave_for_clusters_to_come_may_be_empty(tmp_path: Path) -> None:
    clusters, found = read(tmp_path, '[rollout]\nwaves = ["stage=canary", "site=north", "name=muc", "name=*"]\n')
    assert found is not None
    assert [wave.label for wave in waves_of(clusters, found)] == ["stage=canary", "site=north", "name=muc"]


def test_a_cluster_that_no_wave_names_is_an_error(tmp_path: Path) -> None:
    clusters, found = read(tmp_path, '[rollout]\nwaves = ["site=north"]\n')
    assert found is not None
    with pytest.raises(InputError, match=r"10: rollout.waves: has no label of: muc"):
        waves_of(clusters, found)
    assert waves_of(clusters[:2], found) == (RolloutWave("site=north", ("ham", "ber")),)
    assert read(tmp_path, "") == (clusters, None)


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
        read(tmp_path, f"[rollout]\n{table}\n")
    assert message in caught.value.message
    assert caught.value.message.startswith(f"{tmp_path / 'gpolicy.toml'}:{line}: ")
    assert caught.value.hint
