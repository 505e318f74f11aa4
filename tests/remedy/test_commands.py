"""The commands of remedies: Ganeti's own parsers read them, and both routes submit the same job."""

from __future__ import annotations

from gpolicy.ganeti.commands import Command
from tests.ganeti.real_ganeti import needs_ganeti, real_ganeti
from tests.remedy.broken_clusters import remedy_of
from tests.remedy.test_legal_sizes import cure_of, pair

pytestmark = needs_ganeti
SEEDS = (1, 3, 5, 14, 17, 20, 21, 33, 36)


def every_command() -> list[Command]:
    found: dict[str, Command] = {}
    for seed in SEEDS:
        report = remedy_of(seed)
        made = [commands for step in report.steps for commands in (step.commands, step.back)]
        made += [commands for item in report.sizes for commands in (item.commands, item.back)]
        for commands in made:
            found.update((" ".join(item.argv), item) for item in commands if item.argv)
    return list(found.values())


def test_both_routes_submit_the_same_job() -> None:
    commands = every_command()
    verbs = set()
    for command in commands:
        assert command.argv is not None
        verbs.add(command.argv[1])
        fields = real_ganeti().parse(command.argv)
        assert fields["instance_name"] == next(word for word in command.argv if word.startswith("inst"))
        if command.rapi is not None:
            assert real_ganeti().receive(command.rapi) == fields
    assert verbs == {"migrate", "failover", "replace-disks", "move", "modify"}
    assert {item.argv[1] for item in commands if item.argv and item.rapi is None} == {"move"}


def test_both_routes_grow_a_disk_alike() -> None:
    (command,) = cure_of("build1", pair({"disk-size": 80 * 1024}, {})).commands
    assert real_ganeti().parse(command.argv) == real_ganeti().receive(command.rapi)
