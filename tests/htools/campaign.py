"""Compare many random questions with the real programs: `campaign.py --help`.

The work is done in child processes, some hundred cases of one kind in each. What came of them is a line of the journal;
a run with the journal of an earlier one goes on behind it.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field
from pathlib import Path

from tests.children import Died, in_children
from tests.htools.random_requests import KINDS, make_case
from tests.htools.three_ways import CRASHED, DIFFERENT, EQUAL, INSTALLED, SKIPPED, compare

EACH = "each kind"
PATIENCE = 120.0  # seconds after which a case of ours has not ended


@dataclass(frozen=True, slots=True)
class Chunk:
    """Cases of a kind, or of EACH kind in turn: seeds from `first` on.

    Each is asked of real program and engine, some of the law as well.
    """

    kind: str
    first: int
    count: int
    most_nodes: int = 7
    law_every: int = 0
    seconds: float = 3.0

    def kind_of(self, seed: int) -> str:
        return KINDS[seed % len(KINDS)] if self.kind == EACH else self.kind


@dataclass(slots=True)
class Found:
    """The result of a chunk: the number of cases of each outcome and of answers of the law, and the differences."""

    chunk: Chunk
    counts: dict[str, int] = field(default_factory=dict)
    law: int = 0
    differences: list[str] = field(default_factory=list)


def work(chunk: Chunk) -> None:
    """Compare the cases of a chunk in this process; print a line for each."""
    for seed in range(chunk.first, chunk.first + chunk.count):
        case = make_case(chunk.kind_of(seed), seed, chunk.most_nodes)
        law = chunk.law_every > 0 and seed % chunk.law_every == 0
        outcome, difference = compare(case, chunk.seconds, law=law)
        sys.stdout.write(json.dumps([outcome, difference, law and outcome != SKIPPED]) + "\n")
        sys.stdout.flush()


def in_child(chunk: Chunk) -> Found:
    """Let a child process do the chunk; a crash of ours is a difference."""
    found, counts = Found(chunk), Counter[str]()
    settings = [chunk.kind, str(chunk.most_nodes), str(chunk.law_every), str(chunk.seconds)]
    for seed, line in in_children(
        ["-m", "tests.htools.campaign", "chunk", *settings], chunk.first, chunk.count, PATIENCE
    ):
        outcome, difference, law = (DIFFERENT, f"ours: {line}", False) if isinstance(line, Died) else json.loads(line)
        counts[outcome] += 1
        found.law += law
        if difference:
            found.differences.append(f"{chunk.kind_of(seed)}, seed {seed}: {difference}")
    found.counts = dict(counts)
    return found


def table(lines: list[Found]) -> str:
    """Return what a journal holds as a Markdown table."""
    rows = [
        "| kind | cases | first seed | last | equal | also by the law | real too slow | real dies | different |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    total: Counter[str] = Counter()
    for kind in KINDS:
        own = [line for line in lines if line.chunk.kind == kind]
        if not own:
            continue
        counts: Counter[str] = Counter()
        for line in own:
            counts.update(line.counts)
            counts["law"] += line.law
        total.update(counts)
        first = min(line.chunk.first for line in own)
        last = max(line.chunk.first + line.chunk.count for line in own) - 1
        rows.append(_row(kind, counts, str(first), str(last)))
    return "\n".join([*rows, _row("all", total, "", "")])


def _row(kind: str, counts: Counter[str], first: str, last: str) -> str:
    cases = sum(counts[outcome] for outcome in (EQUAL, DIFFERENT, SKIPPED, CRASHED))
    numbers = [counts[EQUAL], counts["law"], counts[SKIPPED], counts[CRASHED], counts[DIFFERENT]]
    return f"| {kind} | {cases:,} | {first} | {last} | {' | '.join(f'{number:,}' for number in numbers)} |"


def read_journal(path: Path) -> list[Found]:
    """Return what earlier runs found; a line that was cut off counts as not done."""
    lines = []
    for text in path.read_text().splitlines() if path.exists() else []:
        try:
            value = json.loads(text)
        except ValueError:
            continue
        lines.append(Found(Chunk(**value.pop("chunk")), **value))
    return lines


def todo(options: argparse.Namespace, lines: list[Found]) -> list[Chunk]:
    """Return the chunks that are still to be done, the kinds in turn."""
    done = {(line.chunk.kind, line.chunk.first) for line in lines}
    each = -(-options.cases // len(KINDS))
    return [
        Chunk(kind, first, min(options.size, each - start), options.most_nodes, options.law_every, options.seconds)
        for start in range(0, each, options.size)
        for kind in KINDS
        if (kind, first := options.first + start) not in done
    ]


def main() -> int:
    """Run what the command line asks for; the exit code is 1 where something differs."""
    if sys.argv[1:2] == ["chunk"]:
        kind, most_nodes, law_every, seconds, first, count = sys.argv[2:]
        work(Chunk(kind, int(first), int(count), int(most_nodes), int(law_every), float(seconds)))
        return 0
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", type=int, default=100_000, help="of all kinds together")
    parser.add_argument("--first", type=int, default=0, help="first seed of each kind")
    parser.add_argument("--journal", type=Path, default=Path("campaign.jsonl"), help="goes on where this one ends")
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--size", type=int, default=250, help="cases of a child process")
    parser.add_argument("--law-every", type=int, default=10, help="ask the law in one of so many cases; 0: never")
    parser.add_argument("--seconds", type=float, default=3.0, help="that the real program may take for a case")
    parser.add_argument("--most-nodes", type=int, default=10, help="of a cluster")
    parser.add_argument("--table", action="store_true", help="print the table of the journal, and do nothing")
    parser.add_argument("--case", nargs=2, metavar=("KIND", "SEED"), help="compare one case here, its files left here")
    options = parser.parse_args()
    if not INSTALLED:
        parser.error("the real programs are not installed (Debian: apt-get install ganeti-htools)")
    if options.case:
        case = make_case(options.case[0], int(options.case[1]), options.most_nodes)
        outcome, difference = compare(case, options.seconds, law=True)
        sys.stdout.write(f"{case.program} {' '.join(case.arguments)}: {outcome} {difference}\n")
        return int(outcome == DIFFERENT)
    if not options.table:
        campaign(options)
    lines = read_journal(options.journal)
    differences = [text for line in lines for text in line.differences]
    sys.stdout.write("\n".join([table(lines), "", *differences]) + "\n")
    return int(bool(differences))


def campaign(options: argparse.Namespace) -> None:
    """Do the chunks that the journal does not have yet."""
    chunks = todo(options, read_journal(options.journal))
    begin, cases = time.monotonic(), 0
    with options.journal.open("a") as output, ThreadPoolExecutor(options.processes) as pool:
        for found in pool.map(in_child, chunks):
            output.write(json.dumps(asdict(found)) + "\n")
            output.flush()
            cases += found.chunk.count
            for text in found.differences:
                sys.stderr.write(f"{text}\n")
            sys.stderr.write(f"{cases:,} cases, {time.monotonic() - begin:.0f} s\n")


if __name__ == "__main__":
    sys.exit(main())
