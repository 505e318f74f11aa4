"""The examples of the README are gpolicy's output."""

from __future__ import annotations

from tests.cli.command_line import ROOT, gpolicy


def test_the_plan_in_the_readme_is_what_plan_prints() -> None:
    """Each piece between the dots stands in the output, in this order."""
    picture = (ROOT / "README.md").read_text(encoding="utf-8").split("```")[1]
    command, *lines = picture.strip().splitlines()
    policy = command.split()[3]
    told = gpolicy("plan", ROOT / policy, "--state", f"snapshot:{ROOT / policy}.snapshot.json").stdout
    pieces = [piece.strip() for line in lines for piece in line.split("…") if piece.strip()]
    assert len(pieces) > 8
    for piece in pieces:
        assert piece in told, piece
        told = told[told.index(piece) + len(piece) :]
