"""Laws of writing drift into a policy: it is gone then, nothing else has changed, and a second time writes nothing."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import yaml
from hypothesis import HealthCheck, event, given, settings, strategies as st

from gpolicy.cluster.state import ClusterState
from gpolicy.drift.comparing import find_drift
from gpolicy.drift.write_back import WriteBack, write_back
from gpolicy.findings import Severity
from gpolicy.plan.changes import ChangeKey, key_of
from gpolicy.plan.diff import diff
from gpolicy.policy.kinds import Policy
from gpolicy.policy.loading import load_policy
from tests.drift.test_comparing import TODAY
from tests.laws import examples
from tests.strategies import GeneratedPolicy, adopted, cluster_states, policies


def in_blocks(generated: GeneratedPolicy) -> str:
    """Return a policy in the form that people write, with a comment on each line."""
    texts = []
    for document in generated.documents:
        lines = yaml.safe_dump(document, sort_keys=False, default_flow_style=None, width=10_000).splitlines()
        commented = [f"{line}  # {number}" if number % 3 else line for number, line in enumerate(lines)]
        texts.append(
            "\n".join(line for pair in zip(commented, _above(lines), strict=True) for line in pair[::-1] if line)
        )
    return "\n---\n".join(texts) + "\n"


def _above(lines: list[str]) -> list[str]:
    return [
        f"{' ' * (len(line) - len(line.lstrip()))}# above {n}" if n % 5 == 4 else "" for n, line in enumerate(lines)
    ]


FORMS: dict[str, Callable[[GeneratedPolicy], str]] = {"json": lambda generated: generated.text, "blocks": in_blocks}


@dataclass(frozen=True)
class Run:
    policy: Policy
    wrote: WriteBack

    @property
    def written(self) -> set[ChangeKey]:
        return {(item.drift.object, item.drift.path) for item in self.wrote.written}


def write(file: Path, state: ClusterState, *selected: str) -> Run:
    policy = load_policy(file)
    report = find_drift(policy, state, today=TODAY)
    wrote = write_back(policy, state, report, selected=selected, today=TODAY, in_bases=False, others=list)
    for name, text in wrote.texts.items():
        Path(name).write_text(text, encoding="utf-8", newline="")
    return Run(policy, wrote)


def keys(policy: Policy, state: ClusterState) -> set[ChangeKey]:
    return set(map(key_of, diff(policy, state).changes))


def changed_keys(before: Policy, after: Policy) -> set[str]:
    """Return the first keys in the documents of all values that changed, as another reader of YAML sees them."""
    found = set[str]()
    for name in before.files:
        was, now = (list(yaml.safe_load_all(policy.files[name].text)) for policy in (before, after))
        assert [item.get("name") for item in was] == [item.get("name") for item in now[: len(was)]]
        for one, other in zip(was, now, strict=False):
            found |= {key for key in one.keys() | other.keys() if one.get(key) != other.get(key)}
    return found


KEYS_OF = {"name": {"removed"}, "group": {"nodes"}, "tags": {"tags", "exclusion"}}


def comments(policy: Policy) -> list[str]:
    return [file.text[start:stop].rstrip() for file in policy.files.values() for start, stop in file.comments]


@given(st.data())
@settings(max_examples=examples(6), suppress_health_check=list(HealthCheck))
def test_what_is_written_is_gone_and_nothing_else_has_changed(data: st.DataObject) -> None:
    state = data.draw(cluster_states())
    generated = data.draw(policies(state) | cluster_states().map(adopted))
    form = data.draw(st.sampled_from(sorted(FORMS)))
    with tempfile.TemporaryDirectory() as directory:
        file = Path(directory, "policy.yaml")
        file.write_text(FORMS[form](generated), encoding="utf-8")
        if any(item.severity is Severity.ERROR for item in load_policy(file).findings):
            return
        drift = keys(load_policy(file), state)
        chosen = data.draw(st.sets(st.sampled_from(sorted(drift)))) if drift else set[ChangeKey]()
        selected = [f"{name}:{'.'.join(path)}" for name, path in sorted(chosen)]
        first = write(file, state, *selected)
        after = load_policy(file)
        event(f"{form}: {len(first.written)} of {len(drift)} written")
        assert keys(after, state) == drift - first.written
        refused = {(item.drift.object, item.drift.path) for item in first.wrote.not_written}
        wanted = chosen or drift
        assert wanted <= first.written | refused
        missing = {name for name, path in wanted if path == ("name",)}  # all of such a group goes with it
        assert first.written - wanted <= {key for key in drift if key[0] in missing or key[1] == ("group",)}
        allowed = {key for _, path in first.written for key in KEYS_OF.get(path[0], {path[0]})}
        assert changed_keys(first.policy, after) <= allowed
        assert comments(after) == comments(first.policy)
        again = write(file, state, *selected)
        assert (again.written, again.wrote.texts) == (set(), {})
