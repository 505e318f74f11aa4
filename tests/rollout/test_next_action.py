"""What a roll-out does next, from its waves and from how far each cluster is."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from gpolicy.rollout.rollout_run import COMPLETE, REVERTED, Carry, Look, PlanStage, next_back, next_forward
from gpolicy.settings.named_clusters import RolloutWave

WAVES = (RolloutWave("a", ("one",)), RolloutWave("b", ("two", "three")), RolloutWave("c", ("four",)))
NAMES = [name for wave in WAVES for name in wave.clusters]
STAGES = st.fixed_dictionaries({name: st.sampled_from(PlanStage) for name in NAMES})
LABELS = st.sets(st.sampled_from([wave.label for wave in WAVES]))


@given(STAGES, LABELS)
def test_no_wave_begins_before_those_before_it_are_done_and_looked_at(
    stages: dict[str, PlanStage], looked_at: set[str]
) -> None:
    action = next_forward(WAVES, stages, looked_at)
    number = len(WAVES) if action is None else WAVES.index(action.wave)
    for wave in WAVES[:number]:
        assert all(stages[name] in COMPLETE for name in wave.clusters)
        assert wave.label in looked_at
    match action:
        case Carry(wave, clusters):
            assert clusters == tuple(name for name in wave.clusters if stages[name] not in COMPLETE) != ()
        case Look(wave):
            assert all(stages[name] in COMPLETE for name in wave.clusters)
            assert wave.label not in looked_at


@given(STAGES, st.sets(st.sampled_from(NAMES)))
def test_what_is_left_to_take_back_comes_last_wave_first(stages: dict[str, PlanStage], tried: set[str]) -> None:
    left = [name for name in NAMES if stages[name] not in REVERTED and name not in tried]
    action = next_back(WAVES, stages, tried)
    if action is None:
        assert not left
        return
    assert set(action.clusters) == set(left) & set(action.wave.clusters) != set()
    assert not any(set(wave.clusters) & set(left) for wave in WAVES[WAVES.index(action.wave) + 1 :])
