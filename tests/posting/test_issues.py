"""One issue while a cluster has drifted, against a server that speaks as GitHub, GitLab and Gitea do."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.posting.command import post
from tests.posting.comment_server import BOT, GITEA, STRANGER, TOKEN, Comments

SERVICES = ("github", "gitlab", "gitea")
MARK = "<!-- gpolicy: drift-of-ham -->"


def environment(service: str, server: Comments) -> dict[str, str]:
    if service == "gitlab":
        return {"CI_API_V4_URL": server.base, "CI_PROJECT_ID": "3", "GPOLICY_GITLAB_TOKEN": TOKEN}
    base = server.base + ("/api/v1" if service == "gitea" else "")
    return {"GITHUB_API_URL": base, "GITHUB_REPOSITORY": "o/r", "GITHUB_TOKEN": TOKEN}


def keep(service: str, server: Comments, code: int, text: str, directory: Path) -> int:
    file = directory / "drift.md"
    file.write_text(text, encoding="utf-8")
    return post([service, "--issue", str(code), "drift of ham", str(file)], environment(service, server))


@pytest.mark.parametrize("service", SERVICES)
def test_an_issue_is_opened_updated_and_closed(
    service: str, server: Comments, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert keep(service, server, 0, "none\n", tmp_path) == 0
    assert server.issues == []
    for code, text in ((2, "1 difference"), (2, "1 difference"), (2, "2 differences"), (3, ""), (1, ""), (0, "none")):
        assert keep(service, server, code, text, tmp_path) == 0
    assert [(issue["title"], issue["state"], issue["body"]) for issue in server.issues] == [
        ("drift of ham", "closed", f"{MARK}\nnone")
    ]
    assert keep(service, server, 2, "again\n", tmp_path) == 0
    assert server.open_issues() == [f"{MARK}\nagain"]
    said = [line.rpartition("--> ")[2].partition(":")[0] for line in capsys.readouterr().err.splitlines()]
    assert said == ["is not needed", "written", "is unchanged", "updated", "stays", "stays", "closed", "written"]


@pytest.mark.parametrize("service", SERVICES)
def test_issues_of_others_of_other_clusters_and_pull_requests_stay(
    service: str, server: Comments, tmp_path: Path
) -> None:
    bot = GITEA if service == "gitea" else BOT
    before = [f"{MARK}\ntrust me", "<!-- gpolicy: drift-of-ber -->\nours", "a bug"]
    for body, user in zip(before, (STRANGER, bot, STRANGER), strict=True):
        server.add_issue(body, user)
    for number in range(150):
        server.add_issue(f"issue {number}")
    if service != "gitlab":
        server.add_issue(f"{MARK}\na pull request", bot, pull_request={"url": "x"})
    before = server.open_issues()
    assert keep(service, server, 2, "1 difference", tmp_path) == 0
    assert server.open_issues() == [*before, f"{MARK}\n1 difference"]
    assert keep(service, server, 0, "none", tmp_path) == 0
    assert server.open_issues() == before


@pytest.mark.parametrize("service", SERVICES)
def test_a_token_that_may_not_write_is_a_failure(
    service: str, server: Comments, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    server.may_write = False
    assert keep(service, server, 2, "1 difference", tmp_path) == 3
    assert "the token does not allow it" in capsys.readouterr().err


@pytest.mark.parametrize("service", SERVICES)
@pytest.mark.parametrize("arguments", [["--issue"], ["--issue", "x", "n", "f"], ["--issue", "2", "n"]])
def test_wrong_usage(service: str, server: Comments, arguments: list[str]) -> None:
    assert post([service, *arguments], environment(service, server)) == 3
    assert server.asked == []


def test_a_text_that_is_too_long_is_refused(server: Comments, tmp_path: Path) -> None:
    assert keep("github", server, 2, "x" * 65_536, tmp_path) == 3
    assert server.issues == []
