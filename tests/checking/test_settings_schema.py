"""The schema of gpolicy.toml agrees with its reader."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest
from jsonschema import Draft7Validator

from gpolicy.checking import catalogue
from gpolicy.checking.catalogue import CATALOGUE
from gpolicy.checking.settings import Settings
from gpolicy.checking.settings_tables import read_settings
from gpolicy.errors import InputError
from gpolicy.findings import RuleInfo, RuleParameter, Severity
from scripts.reference import settings_schema

VALIDATOR = Draft7Validator(settings_schema.settings_schema())


def test_it_is_a_schema_of_draft_7() -> None:
    Draft7Validator.check_schema(settings_schema.settings_schema())


GOOD = [
    "exclude = ['mkdocs.yml', 'charts/**']\n",
    "",
    "[check]\n[rules]\n",
    '[check]\nselect = ["GP2", "spec-overlap", "GP301"]\nignore = ["GP0", "size-rounded"]\nfail-on = "never"\n',
    '[check.severity]\nGP2 = "info"\nspec-overlap = "error"\nGP011 = "error"\n',
    '[check]\nbaseline = "b.json"\n[check.per-file-ignores]\n"legacy/*" = ["GP"]\n',
]
BAD = [
    "exclude = 'mkdocs.yml'\n",
    "exclude = ['/mkdocs.yml']\n",
    "[check]\nexclude = ['mkdocs.yml']\n",
    "[chekc]\n",
    "[check]\nfail_on = 'error'\n",
    "[check]\nselect = 'GP2'\n",
    "[check]\nselect = ['nope']\n",
    "[check]\nselect = []\n",
    "[check]\nignore = ['GP011']\n",
    "[check]\nfail-on = 'fatal'\n",
    "[check]\nbaseline = ''\n",
    "[check.severity]\nGP2 = 'bad'\n",
    "[check.severity]\nnope = 'info'\n",
    "[check.per-file-ignores]\nx = 'GP2'\n",
    "[rules.GP201]\nx = 1\n",
    "[rules.nope]\n",
]


def read(text: str, directory: Path) -> Settings:
    (directory / "gpolicy.toml").write_text(text, encoding="utf-8")
    return read_settings(directory / "gpolicy.toml")


@pytest.mark.parametrize("text", GOOD)
def test_what_the_reader_takes_conforms(text: str, tmp_path: Path) -> None:
    read(text, tmp_path)
    VALIDATOR.validate(tomllib.loads(text))


@pytest.mark.parametrize("text", BAD)
def test_what_the_reader_refuses_does_not(text: str, tmp_path: Path) -> None:
    with pytest.raises(InputError):
        read(text, tmp_path)
    assert not VALIDATOR.is_valid(tomllib.loads(text))


NUMBERED = RuleInfo(
    code="GP299",
    name="too-many",
    severity=Severity.WARNING,
    parameters=(RuleParameter(name="most", default=3, least=1, most=9),),
)


@pytest.fixture
def numbered(monkeypatch: pytest.MonkeyPatch) -> None:
    def named(word: str) -> tuple[tuple[RuleInfo, ...], str]:
        return ((NUMBERED,), "") if word in ("GP299", "too-many") else ((), "")

    monkeypatch.setattr(catalogue, "rules_named", named)
    monkeypatch.setattr(settings_schema, "CATALOGUE", (*CATALOGUE, NUMBERED))


@pytest.mark.usefixtures("numbered")
@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[rules.too-many]\nmost = 5\n", ""),
        ("[rules.GP299]\nmost = 1.5\n", ""),
        ("[rules.too-many]\nmost = 0\n", "gpolicy.toml:2: rules.too-many.most: cannot be 0"),
        ("[rules.too-many]\nmost = 10\n", "cannot be 10"),
        ("[rules.too-many]\nmost = '5'\n", "cannot be '5'"),
        ("[rules.too-many]\nmost = true\n", "cannot be true"),
        ("[rules.too-many]\nleast = 5\n", "rules.too-many.least: unknown key in [rules.too-many]"),
    ],
)
def test_numbers_of_rules(text: str, message: str, tmp_path: Path) -> None:
    valid = Draft7Validator(settings_schema.settings_schema()).is_valid(tomllib.loads(text))
    assert valid is not bool(message)
    if message:
        with pytest.raises(InputError) as caught:
            read(text, tmp_path)
        assert message in caught.value.message
    else:
        made = read(text, tmp_path)
        assert made.parameter(NUMBERED, "most") == tomllib.loads(text)["rules"].popitem()[1]["most"]


def test_impossible_numbers_are_refused(tmp_path: Path, numbered: None) -> None:
    for number in ("nan", "inf", "-inf", "1" * 400):
        with pytest.raises(InputError) as caught:
            read(f"[rules.too-many]\nmost = {number}\n", tmp_path)
        assert caught.value.hint == "write a number from 1 to 9; the default is 3"
