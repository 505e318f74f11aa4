"""One comment that is kept up to date, against a server that speaks as GitHub, GitLab and Gitea do."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from gpolicy.posting.posted_texts import marker
from tests.posting.command import post
from tests.posting.comment_server import APP, BOT, GITEA, STRANGER, TOKEN, Comments, running

SERVICES = ("github", "gitlab", "gitea")


@pytest.fixture
def text(tmp_path: Path) -> Path:
    file = tmp_path / "plan.md"
    file.write_text("### 3 changes\n", encoding="utf-8")
    return file


def environment(service: str, server: Comments, tmp_path: Path) -> dict[str, str]:
    if service == "gitlab":
        return {
            "CI_API_V4_URL": server.base,
            "CI_PROJECT_ID": "3",
            "CI_MERGE_REQUEST_IID": "7",
            "GPOLICY_GITLAB_TOKEN": TOKEN,
        }
    event = tmp_path / "event.json"
    event.write_text(json.dumps({"pull_request": {"number": 7}}), encoding="utf-8")
    return {
        "GITHUB_API_URL": server.base + ("/api/v1" if service == "gitea" else ""),
        "GITHUB_REPOSITORY": "o/r",
        "GITHUB_EVENT_PATH": str(event),
        "GITHUB_TOKEN": TOKEN,
    }


@pytest.mark.parametrize("service", SERVICES)
def test_the_first_run_writes_and_the_next_replaces(
    service: str, server: Comments, text: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    environ = environment(service, server, tmp_path)
    server.add("nice work")
    assert post([service, "policy", str(text)], environ) == 0
    assert server.bodies() == ["nice work", "<!-- gpolicy: policy -->\n### 3 changes"]
    text.write_text("### no change\n", encoding="utf-8")
    assert post([service, "policy", str(text)], environ) == 0
    assert server.bodies() == ["nice work", "<!-- gpolicy: policy -->\n### no change"]
    assert post([service, "policy", str(text)], environ) == 0
    said = capsys.readouterr().err.splitlines()
    assert [line.rpartition(" -->")[2] for line in said] == [" written", " updated", " is unchanged"]
    assert TOKEN not in "".join(said)


@pytest.mark.parametrize("service", SERVICES)
def test_a_comment_can_be_printed_instead_without_any_environment(
    service: str, text: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert post([service, "--print", "policy", str(text), str(tmp_path / "no-such.md")], {}) == 0
    captured = capsys.readouterr()
    assert captured.out == "<!-- gpolicy: policy -->\n### 3 changes\n"
    assert "is printed, not written" in captured.err
    text.write_text("x" * 1_000_001, encoding="utf-8")
    assert post([service, "--print", "policy", str(text)], {}) == 3


@pytest.mark.parametrize("service", SERVICES)
def test_the_comment_is_found_behind_many_others(service: str, server: Comments, text: Path, tmp_path: Path) -> None:
    for number in range(250):
        server.add(f"comment {number}")
    ours = server.add("<!-- gpolicy: policy -->\nold", GITEA if service == "gitea" else BOT)
    for number in range(60):
        server.add(f"comment {number}")
    assert post([service, "policy", str(text)], environment(service, server, tmp_path)) == 0
    assert len(server.comments) == 311
    assert next(item["body"] for item in server.comments if item["id"] == ours).endswith("3 changes")


@pytest.mark.parametrize("service", SERVICES)
@pytest.mark.parametrize("knows_user", [True, False])
def test_a_comment_of_another_user_with_our_marker_stays(
    service: str, knows_user: bool, server: Comments, text: Path, tmp_path: Path
) -> None:
    server.knows_user = knows_user
    server.add("<!-- gpolicy: policy -->\ntrust me", STRANGER)
    assert post([service, "policy", str(text)], environment(service, server, tmp_path)) == 0
    assert server.bodies() == ["<!-- gpolicy: policy -->\ntrust me", "<!-- gpolicy: policy -->\n### 3 changes"]


@pytest.mark.parametrize(("viewer", "other"), [(None, APP), (BOT, APP), (APP, BOT)])
def test_a_comment_of_another_bot_with_our_marker_stays(
    viewer: dict[str, Any] | None, other: dict[str, Any], server: Comments, text: Path, tmp_path: Path
) -> None:
    server.viewer = viewer
    server.add("<!-- gpolicy: policy -->\nof another app", other)
    environ = environment("github", server, tmp_path)
    for shown in ("### 3 changes", "### no change"):
        text.write_text(shown, encoding="utf-8")
        assert post(["github", "policy", str(text)], environ) == 0
        assert server.bodies() == ["<!-- gpolicy: policy -->\nof another app", f"<!-- gpolicy: policy -->\n{shown}"]


@pytest.mark.parametrize("answer", [b"[]", b'{"data": null}', b'{"data": {"viewer": {"login": 7}}}', b"<html>"])
def test_an_unknown_login_counts_as_the_workflow(answer: bytes, server: Comments, text: Path, tmp_path: Path) -> None:
    server.answers["/graphql"] = server.answers["/user"] = (200, answer)
    server.add("<!-- gpolicy: policy -->\nold", BOT)
    assert post(["github", "policy", str(text)], environment("github", server, tmp_path)) == 0
    assert server.bodies() == ["<!-- gpolicy: policy -->\n### 3 changes"]


@pytest.mark.parametrize("service", SERVICES)
def test_two_policies_have_two_comments(service: str, server: Comments, text: Path, tmp_path: Path) -> None:
    environ = environment(service, server, tmp_path)
    for name in ("policies/a", "policies/ab", "policies/a"):
        assert post([service, name, str(text)], environ) == 0
    assert len(server.comments) == 2


@pytest.mark.parametrize("service", SERVICES)
@pytest.mark.parametrize("may_read", [True, False])
def test_without_permission_nothing_fails(
    service: str, may_read: bool, server: Comments, text: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    server.may_write, server.may_read = False, may_read
    assert post([service, "policy", str(text)], environment(service, server, tmp_path)) == 0
    assert "no comment: the token does not allow it" in capsys.readouterr().err
    assert server.comments == []


@pytest.mark.parametrize("service", SERVICES)
def test_a_wrong_token_is_not_shown(
    service: str, server: Comments, text: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    environ = {
        key: "wr0ng" if value == TOKEN else value for key, value in environment(service, server, tmp_path).items()
    }
    assert post([service, "policy", str(text)], environ) == 0
    assert "wr0ng" not in capsys.readouterr().err


@pytest.mark.parametrize("service", SERVICES)
def test_no_request_no_comment(service: str, server: Comments, text: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert post([service, "policy", str(text)], {"GITHUB_REF": "refs/heads/main"}) == 0
    assert "not a pull request" in capsys.readouterr().err
    assert server.asked == []


def test_the_request_is_read_from_the_ref_as_well(server: Comments, text: Path, tmp_path: Path) -> None:
    environ = environment("github", server, tmp_path) | {"GITHUB_REF": "refs/pull/7/merge"}
    (tmp_path / "event.json").write_text("{}", encoding="utf-8")
    assert post(["github", "policy", str(text)], environ) == 0
    assert len(server.comments) == 1


@pytest.mark.parametrize("service", SERVICES)
@pytest.mark.parametrize(
    ("code", "body", "says"),
    [
        (500, b"", "answers 500"),
        (302, b"", "answers 302"),
        (200, b"<html>", "is not JSON"),
        (200, b'{"a": 1}', "not a list of objects"),
        (200, b"[1]", "not a list of objects"),
        (200, b'[{"body": "x"}]', "without a number"),
        (200, b"[" * 100_000, "is not JSON"),
    ],
)
def test_a_malformed_answer_is_one_line(
    service: str,
    code: int,
    body: bytes,
    says: str,
    server: Comments,
    text: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    for path in ("/repos/o/r/issues/7/comments", "/projects/3/merge_requests/7/notes"):
        server.answers[path] = (code, body)
    assert post([service, "policy", str(text)], environment(service, server, tmp_path)) == 3
    said = capsys.readouterr().err
    assert says in said
    assert said.count("\n") == 1


def test_a_token_goes_over_https_only(
    server: Comments, text: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    environ = environment("gitlab", server, tmp_path) | {"CI_API_V4_URL": "http://gitlab.example.org/api/v4"}
    assert post(["gitlab", "policy", str(text)], environ) == 3
    assert "https://" in capsys.readouterr().err


@pytest.mark.parametrize("service", SERVICES)
@pytest.mark.parametrize("token", [f"{TOKEN}\nHost: x", f"{TOKEN}\u20ac", f"{TOKEN} b"])
def test_a_token_that_cannot_be_sent_is_not_shown(
    service: str, token: str, server: Comments, text: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    environ = {key: token if value == TOKEN else value for key, value in environment(service, server, tmp_path).items()}
    assert post([service, "policy", str(text)], environ) == 3
    said = capsys.readouterr()
    assert "is not a valid token" in said.err
    assert TOKEN not in said.err + said.out
    assert server.asked == []


def test_a_line_end_after_a_token_is_not_part_of_it(server: Comments, text: Path, tmp_path: Path) -> None:
    assert (
        post(["github", "p", str(text)], environment("github", server, tmp_path) | {"GITHUB_TOKEN": f"{TOKEN}\n"}) == 0
    )
    assert len(server.comments) == 1


def test_a_password_in_the_address_is_not_shown(
    server: Comments, text: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    environ = environment("github", server, tmp_path) | {"GITHUB_API_URL": "https://me:hush@example.org"}
    assert post(["github", "p", str(text)], environ) == 3
    assert "hush" not in capsys.readouterr().err


def test_no_proxy_sees_a_token_and_no_file_the_keys_of_a_connection(
    server: Comments, text: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    keys = tmp_path / "keys"
    monkeypatch.setenv("SSLKEYLOGFILE", str(keys))
    monkeypatch.delenv("no_proxy", raising=False)
    monkeypatch.delenv("NO_PROXY", raising=False)
    with running() as proxy:
        monkeypatch.setenv("http_proxy", proxy.base)
        assert post(["github", "policy", str(text)], environment("github", server, tmp_path)) == 0
    assert len(server.comments) == 1
    assert proxy.asked == []
    assert not keys.exists()


def test_an_unreachable_service(text: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with running() as server:
        environ = environment("gitlab", server, tmp_path)
    assert post(["gitlab", "policy", str(text)], environ) == 3
    assert "refused" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "changes", "says"),
    [
        (["github"], {}, "Missing argument"),
        (["forge", "a", "b"], {}, "the services are gitea, github, gitlab"),
        (["github", "policy", "plan.md"], {"GITHUB_TOKEN": ""}, "no token"),
        (["github", "policy", "plan.md"], {"GITHUB_REPOSITORY": "o/r/../x"}, "not OWNER/NAME"),
        (["github", "policy", "plan.md"], {"GITHUB_EVENT_PATH": "/nonexistent"}, "GITHUB_EVENT_PATH"),
    ],
)
def test_wrong_usage(
    arguments: list[str],
    changes: dict[str, str],
    says: str,
    server: Comments,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert post(arguments, environment("github", server, tmp_path) | changes) == 3
    assert says in capsys.readouterr().err
    assert server.asked == []


@pytest.mark.parametrize("most", [None, 30, 50])
def test_on_gitea_a_comment_is_found_on_any_page(
    most: int | None, server: Comments, text: Path, tmp_path: Path
) -> None:
    """A server may give all comments at once, or fewer on a page than are asked for."""
    server.most = most
    for number in range(120):
        server.add(f"comment {number}")
    environ = environment("gitea", server, tmp_path)
    for words in ("one", "two"):
        text.write_text(words, encoding="utf-8")
        assert post(["gitea", "policy", str(text)], environ) == 0
    assert server.bodies()[120:] == ["<!-- gpolicy: policy -->\ntwo"]
    asked = [words.split()[0] for words in server.asked if "/comments" in words]
    pages = {None: 3, 30: 10, 50: 7}[most]  # all, then as far as the comment
    assert [asked.count(method) for method in ("GET", "POST", "PATCH")] == [pages, 1, 1]
    assert all(words.split()[1].startswith("/api/v1/") for words in server.asked)


@pytest.mark.parametrize("most", [None, 30])
def test_on_gitea_an_issue_behind_many_is_closed(
    most: int | None, server: Comments, text: Path, tmp_path: Path
) -> None:
    server.most = most
    for number in range(120):
        server.add_issue(f"issue {number}")
    environ = environment("gitea", server, tmp_path)
    assert post(["gitea", "--issue", "2", "drift", str(text)], environ) == 0
    assert len(server.open_issues()) == 121
    assert post(["gitea", "--issue", "0", "drift", str(text)], environ) == 0
    assert len(server.open_issues()) == 120


@pytest.mark.parametrize("knows_user", [True, False])
@pytest.mark.parametrize("name", ["gitea-actions", "forgejo-actions"])
def test_on_gitea_and_forgejo_the_token_of_a_job_is_that_of_the_workflow(
    name: str, knows_user: bool, server: Comments, text: Path, tmp_path: Path
) -> None:
    server.knows_user = knows_user
    server.add("<!-- gpolicy: policy -->\nof one who calls himself so", {"id": 7, "login": name})
    server.add("<!-- gpolicy: policy -->\nbefore", {"id": -2, "login": name})
    assert post(["gitea", "policy", str(text)], environment("gitea", server, tmp_path)) == 0
    assert server.bodies()[1:] == ["<!-- gpolicy: policy -->\n### 3 changes"]


def test_a_token_for_gitea_goes_to_no_other_service(
    server: Comments, text: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    environ = environment("gitea", server, tmp_path)
    del environ["GITHUB_API_URL"]
    assert post(["gitea", "policy", str(text)], environ) == 3
    assert "'': the address of the API should begin with https://" in capsys.readouterr().err


def test_too_long_a_text_is_refused_before_anything_is_asked(
    server: Comments, text: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text.write_text("x" * 65_536, encoding="utf-8")
    assert post(["github", "policy", str(text)], environment("github", server, tmp_path)) == 3
    assert "--budget" in capsys.readouterr().err
    assert server.asked == []


def test_missing_and_empty_files_are_not_posted(
    server: Comments, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert post(["github", "policy", str(tmp_path / "none.md")], environment("github", server, tmp_path)) == 0
    assert "nothing to post" in capsys.readouterr().err
    assert server.asked == []


@pytest.mark.parametrize(
    ("name", "line"),
    [
        ("policies/a", "<!-- gpolicy: policies/a -->"),
        ("a --> <script>", "<!-- gpolicy: a-script -->"),
        ("a\nb", "<!-- gpolicy: a-b -->"),
        ("-->", "<!-- gpolicy: policy -->"),
        ("x" * 500, f"<!-- gpolicy: {'x' * 100} -->"),
    ],
)
def test_a_name_cannot_end_the_marker(name: str, line: str) -> None:
    assert marker(name) == line
