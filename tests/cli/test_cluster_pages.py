"""`gpolicy clusters --pages`: the page for a wall, and the page of each cluster."""

from __future__ import annotations

import json
import os
import re
import shutil
import stat
from pathlib import Path
from typing import Any

import pytest

from tests.cli.command_line import ROOT, gpolicy
from tests.growth.test_capacity_history import LINE
from tests.report.rendered import Page

GROWING = ROOT / "policies/growing"
NEWEST = max(GROWING.iterdir())
EVIL = "<img src=x onerror=alert(1)>"
DEAD = '[clusters.dead]\nstate = "rapi://127.0.0.1:1"\n'


def settings_of(*names: str) -> str:
    return "".join(f'[clusters.{name}]\npolicy = "{name}"\nstate = "text:{name}.txt"\n' for name in names)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The checkout of the fleet's two clusters, with a third that grows, one full of faults and one that is dead."""
    folder = tmp_path_factory.mktemp("site")
    shutil.copytree(ROOT / "policies/fleet", folder, dirs_exist_ok=True)
    shutil.copytree(GROWING, folder / "kept/growing")
    shutil.copytree(ROOT / "policies/two-groups", folder / "faulty")
    state = (ROOT / "policies/two-groups.snapshot.json").read_text(encoding="utf-8")
    (folder / "faulty.json").write_text(state.replace("warehouse.example.org", EVIL), encoding="utf-8")
    with (folder / "gpolicy.toml").open("a", encoding="utf-8") as file:
        file.write(f'[clusters.growing]\nstate = "snapshot:kept/growing/{NEWEST.name}"\n')
        file.write(f'[clusters.faulty]\npolicy = "faulty"\nstate = "snapshot:faulty.json"\n{DEAD}')
    done = gpolicy("clusters", "--pages", "pages", "--history", "kept", cwd=folder)
    assert done.returncode == 3
    assert "5 clusters, 1 of them without an answer" in done.stdout
    return folder


def rows_of(index: Path) -> dict[str, dict[str, str]]:
    """Return the rows of the index by cluster, as headings with cells."""
    headings, *rows = Page(index.read_text(encoding="utf-8")).tables[0]
    return {row[0].split()[0]: dict(zip(headings, row, strict=True)) for row in rows}


def asked(site: Path, *words: str) -> dict[str, Any]:
    """Return what another verb says of some of the clusters."""
    told = json.loads(gpolicy(*words, "--label", "name=[abf]*", "--format", "json", cwd=site).stdout)
    return {item["name"]: item["report"] for item in told["clusters"]}


def test_the_index_says_what_capacity_and_drift_say(site: Path) -> None:
    rows = rows_of(site / "pages/index.html")
    for name, report in asked(site, "capacity").items():
        assert rows[name]["fits"].split()[0] == f"{report['cluster']['standard']['fits']:,}", name
    for name, report in asked(site, "drift").items():
        assert rows[name]["drift"] == f"{len(report['drift'])}", name
    assert rows["growing"]["drift"] == "no policy"
    (when,) = re.findall(r"full in [0-9]+ to [0-9]+ weeks", LINE)
    assert rows["growing"]["trend"] == f"{when} size 1 in group default"
    assert rows["faulty"]["violations"] == f"1 {EVIL}"
    assert rows["faulty"]["fatal losses"] == "0"
    assert "days old" in rows["growing"]["age"]


def test_the_worst_come_first_and_a_silent_one_is_told(site: Path) -> None:
    rows = rows_of(site / "pages/index.html")
    assert list(rows) == ["dead", "amsterdam", "berlin", "faulty", "growing"]
    assert rows["dead"]["state"] == "could not be looked at no answer: 127.0.0.1:1: Connection refused"
    html = (site / "pages/index.html").read_text(encoding="utf-8")
    assert '<tr class="bad">\n<td class="name">dead ' in html
    assert "<strong>1 could not be looked at: dead; " in html


def test_the_page_of_a_cluster_has_all(site: Path) -> None:
    page = Page((site / "pages/faulty.html").read_text(encoding="utf-8"))
    assert ["where", "what"] in [table[0] for table in page.tables]
    assert any(EVIL in cell and "above" in row[1] for table in page.tables for row in table for cell in row[:1])
    assert {"wrong", "drift", "capacity", "memory", "growth"} <= set(page.ids)
    growing = (site / "pages/growing.html").read_text(encoding="utf-8")
    assert growing.count('<polyline class="use"') == 1
    assert growing.count('<table class="nodes"') > 0


@pytest.mark.parametrize("name", ["index", "faulty", "growing"])
def test_nothing_is_loaded_and_names_are_escaped(site: Path, name: str) -> None:
    html = (site / f"pages/{name}.html").read_text(encoding="utf-8")
    page = Page(html)
    assert not {"img", "link", "iframe"} & page.elements
    assert not {"src", "xlink:href", "style"} & {key for _, key in page.attributes}
    assert not re.search(r"https?://|url\(|@import", html)
    assert "default-src 'none'" in html
    links = {link for link in re.findall(r'href="([^"]*)"', html) if not link.startswith("#")}
    others = {f"{name}.html" for name in ("amsterdam", "berlin", "faulty", "growing")}
    assert links == (others if name == "index" else {"index.html"})
    assert ('http-equiv="refresh" content="300"' in html) is (name == "index")
    assert 'name="viewport" content="width=device-width' in html
    assert stat.S_IMODE((site / f"pages/{name}.html").stat().st_mode) == 0o644


def test_a_cluster_that_falls_silent_keeps_its_page_and_one_that_is_gone_loses_it(tmp_path: Path) -> None:
    for name in ("amsterdam", "berlin"):
        shutil.copy(ROOT / f"policies/fleet/states/{name}.example.org.txt", tmp_path / f"{name}.txt")
        shutil.copytree(ROOT / f"policies/fleet/{name}", tmp_path / name)
    shutil.copy(ROOT / "policies/fleet/base.yaml", tmp_path)
    settings, pages = tmp_path / "gpolicy.toml", tmp_path / "pages"
    settings.write_text(settings_of("amsterdam", "berlin"), encoding="utf-8")
    assert gpolicy("clusters", tmp_path, "--pages", pages).returncode == 0
    (pages / "notes.html").write_text("<p>not ours", encoding="utf-8")
    kept = (pages / "amsterdam.html").read_text(encoding="utf-8")
    os.utime(pages / "amsterdam.html", times=(0, (pages / "index.html").stat().st_mtime - 7200))
    settings.write_text(DEAD.replace("dead", "amsterdam"), encoding="utf-8")
    done = gpolicy("clusters", tmp_path, "--pages", pages, "--label", "name=*", "--format", "json")
    assert (done.returncode, json.loads(done.stdout)["clusters"][0]["error"]) == (3, "127.0.0.1:1: Connection refused")
    assert {file.name for file in pages.iterdir()} == {"index.html", "amsterdam.html", "notes.html"}
    assert (pages / "amsterdam.html").read_text(encoding="utf-8") == kept
    html = (pages / "index.html").read_text(encoding="utf-8")
    assert '<a href="amsterdam.html">amsterdam</a>' in html
    assert '<td class="figure bad" data-is="age"><span class="value words">2 hours old' in html


def test_offline_only_files_and_snapshots_are_read(tmp_path: Path) -> None:
    (tmp_path / "kept/known").mkdir(parents=True)
    shutil.copy(NEWEST, tmp_path / "kept/known")
    settings = "".join(f'[clusters.{name}]\nstate = "rapi://{name}.invalid"\n' for name in ("known", "strange"))
    (tmp_path / "gpolicy.toml").write_text(settings, encoding="utf-8")
    done = gpolicy("clusters", "--offline", "--pages", "pages", "--history", "kept", cwd=tmp_path)
    assert done.returncode == 0
    rows = rows_of(tmp_path / "pages/index.html")
    assert "days old" in rows["known"]["age"]
    assert rows["known"]["trend"] == "no forecast"
    assert rows["strange"]["state"] == "could not be looked at no answer: not contacted (--offline)"
    assert not (tmp_path / "pages/strange.html").exists()


def test_a_history_is_for_pages() -> None:
    done = gpolicy("clusters", "--history", GROWING)
    assert (done.returncode, "say --pages DIR as well" in done.stderr) == (3, True)
