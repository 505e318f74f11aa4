"""What CI installs is locked: all of it, by hash, and as pyproject.toml wants it."""

from __future__ import annotations

import importlib.util
import re
import tomllib
from importlib.metadata import distributions, requires

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

from tests.ci.services import ROOT

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
ENTRY = re.compile(r"([a-z0-9-]+)==([0-9a-z.]+)((?: \\\n    --hash=sha256:[0-9a-f]{64})+)\n")


def locked(name: str) -> dict[str, Version]:
    """Return the version of each package in a file that holds nothing but packages with hashes."""
    first, _, rest = (ROOT / "ci" / name).read_text(encoding="utf-8").partition("\n")
    assert first.startswith("# Made by scripts/lock: ")
    assert ENTRY.sub("", rest) == ""
    return {found[1]: Version(found[2]) for found in ENTRY.finditer(rest)}


def test_the_requirements_of_the_project_are_locked() -> None:
    have = locked("requirements.txt")
    for text in (*PROJECT["project"]["dependencies"], *PROJECT["build-system"]["requires"]):
        wanted = Requirement(text)
        assert have[canonicalize_name(wanted.name)] in wanted.specifier, text


def test_the_requirements_of_requirements_are_locked() -> None:
    """As far as the releases installed here say it."""
    have = locked("requirements.txt")
    here = {canonicalize_name(item.name): Version(item.version) for item in distributions()}
    same = [name for name in have if here.get(canonicalize_name(name)) == have[name]]
    assert len(same) > len(have) / 2
    for name in same:
        for text in requires(name) or ():
            wanted = Requirement(text)
            if wanted.marker is None or wanted.marker.evaluate({"extra": ""}):
                assert canonicalize_name(wanted.name) in have, f"{name}: {text}"


def test_the_compiler_that_is_locked_is_the_one_that_a_build_asks_for() -> None:
    spec = importlib.util.spec_from_file_location("hatch_build", ROOT / "hatch_build.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    wanted = Requirement(module.ZIG)
    assert locked("compiler.txt") == {wanted.name: Version(str(wanted.specifier).removeprefix("=="))}


def test_compiled_packages_are_locked_for_four_pythons_on_two_processors_at_least() -> None:
    text = (ROOT / "ci" / "requirements.txt").read_text(encoding="utf-8")
    hashes = {found[1]: found[3].count("sha256:") for found in ENTRY.finditer(text)}
    assert {name for name, count in hashes.items() if count > 1} == {"markupsafe", "pyyaml", "rpds-py"}
    assert all(count == 1 or count >= 4 * 2 for count in hashes.values())
