"""Saved waves are applied one after the other: the nodes of each are empty meanwhile, and all is at home in the end."""

from __future__ import annotations

from pathlib import Path

import pytest

from gpolicy.apply.plan_run import RefusedError
from gpolicy.evacuate.evacuation import EvacuationRequest
from gpolicy.evacuate.in_turn import find_waves
from gpolicy.remedy.saved_remedy import Move, read_procedure
from tests.apply.model_runner import ModelRunner, run
from tests.apply.pretend_ganeti import PretendGaneti
from tests.cli.command_line import gpolicy
from tests.evacuate.test_evacuation_ends import two_groups
from tests.evacuate.test_upgrades import SNAPSHOT
from tests.plan.ganeti_model import ModelCluster


def test_saved_waves_empty_their_nodes_and_lead_home(tmp_path: Path) -> None:
    state, saved = two_groups(), tmp_path / "waves"
    gpolicy("evacuate", "--in-turn", *SNAPSHOT, "--save", saved)
    waves = find_waves(state, EvacuationRequest()).waves
    ganeti = PretendGaneti(ModelCluster(state), uuid=state.cluster.identity.uuid or "")
    before, runner = ganeti.content(), ModelRunner(ganeti)

    def apply(number: int, way: str, moves: tuple[Move, ...]) -> None:
        file = saved / f"wave-{number}-{way}.json"
        assert file.exists() == bool(moves)
        if moves:
            run(read_procedure(file), runner, tmp_path / f"{number}-{way}")

    assert len(waves) > 2
    for number, wave in enumerate(waves, 1):
        apply(number, "out", wave.out)
        down = {item.instance for item in wave.halted}
        left = [item for item in ganeti.model.state.instances.values() if item.primary_node in wave.nodes]
        assert {item.name for item in left if item.running or item.admin_state == "up"} <= down
        if number == 1:
            with pytest.raises(RefusedError):
                apply(2, "out", waves[1].out)
        apply(number, "back", wave.back)
    assert ganeti.content() == before
