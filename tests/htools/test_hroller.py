"""What hroller plans on small clusters, what it says of wrong options, and the colours of graphs."""

from __future__ import annotations

import json
import random
from pathlib import Path
from time import monotonic

import pytest

from gpolicy.htools.hroller import colour_nodes
from gpolicy.htools.text_format import parse_cluster
from tests.htools.random_requests import document
from tests.htools.recorded import call

# a path of drbd instances over six nodes, of which the second is the master
CLUSTER = "\n".join(
    [
        "g|u0|preferred||\nh|u1|preferred||\n",
        *(
            f"n{place}.ex|4096|0|4096|40000|40000|8|{'M' if place == 1 else 'N'}|u0|1|{'t' * place}"
            for place in range(6)
        ),
        "",
        *(f"i{place}.ex|512|1024|1|running|Y|n{place}.ex|n{place + 1}.ex|drbd|" for place in range(5)),
        "\n\n",
    ]
)
ALONE = CLUSTER.replace("n5.ex|drbd|", "|plain|")


@pytest.fixture(autouse=True)
def _files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("c.data").write_text(CLUSTER)
    Path("alone.data").write_text(ALONE)
    Path("unknown.data").write_text(CLUSTER.replace("|M|", "|N|"))
    Path("two.data").write_text(CLUSTER.replace("|N|", "|M|", 1))


@pytest.mark.parametrize(
    ("options", "lines"),
    [
        ((), ["'Node Reboot Groups'", "n0.ex,n2.ex,n4.ex", "n3.ex,n5.ex,n1.ex"]),
        (("--one-step-only",), ["'First Reboot Group'", "n0.ex", "n2.ex", "n4.ex"]),
        (("--no-headers", "-O", "n0"), ["n2.ex,n4.ex", "n3.ex,n5.ex,n1.ex"]),
        (("--no-headers", "--node-tags=t,tt,tttt"), ["n2.ex,n4.ex", "n1.ex"]),
        (("--no-headers", "-t", "alone.data", "--skip-non-redundant"), ["n0.ex,n2.ex,n5.ex", "n3.ex,n1.ex"]),
        (
            ("--no-headers", "-t", "alone.data", "--print-moves"),
            ["n0.ex,n2.ex,n4.ex", "  i4.ex n1.ex", "n3.ex,n5.ex,n1.ex"],
        ),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_nodes_that_can_be_rebooted_together(options: tuple[str, ...], lines: list[str]) -> None:
    assert call("hroller", "-t", "c.data", *options) == (0, "".join(f"{line}\n" for line in lines), "")


@pytest.mark.parametrize(
    ("options", "err"),
    [
        (("-t", "c.data", "x"), "This program doesn't take any arguments."),
        ((), "failed to load data, aborting: No backend selected! Exiting."),
        (("-t", "c.data", "-m", "x"), "Only one of the rapi, luxi, and data files options should be given."),
        (("-t", "unknown.data"), "No master node found (maybe not supported by backend)."),
        (("-t", "two.data", "-f"), 'Found more than one master node: ["n0.ex","n1.ex"]'),
        (("-t", "c.data", "-G", "k"), "Cannot find target group."),
        (("-t", "c.data", "-G", "h"), "Cannot create node graph"),
        (("-t", "c.data", "-O", "nobody"), "wrong node name(s) set as offline: nobody\n"),
        (
            ("-I", "r.json", "--full-evacuation"),
            (
                "--full-evacuation: not with an iallocator document (-I), whose instances htools load twice; use -t or"
                " -m"
            ),
        ),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_what_is_wrong_is_said(options: tuple[str, ...], err: str) -> None:
    assert call("hroller", *options) == (1, "", f"Error: {err}\n")


def test_without_a_known_master_it_warns_if_it_is_forced() -> None:
    code, out, err = call("hroller", "-t", "unknown.data", "--force")
    assert (code, out.splitlines()[1:]) == (0, ["n0.ex,n2.ex,n4.ex", "n1.ex,n3.ex,n5.ex"])
    assert err == "Warning: No master node found (maybe not supported by backend).\n"


def test_an_iallocator_document_names_no_master() -> None:
    request = {"type": "node-evacuate", "instances": [], "evac_mode": "all"}
    Path("r.json").write_text(json.dumps(document(random.Random(1), parse_cluster(CLUSTER), request)))  # noqa: S311
    code, out, _ = call("hroller", "-I", "r.json", "-f", "--no-headers")
    assert (code, out) == (0, "n0.ex,n2.ex,n4.ex\nn1.ex,n3.ex,n5.ex\n")


def test_the_graph_and_what_the_algorithms_found() -> None:
    out = call("hroller", "-t", "c.data", "-v", "-v", "--offline-maintenance")[1]
    assert out.splitlines()[:2] == [
        "Node Graph: array (0,5) [(0,[1]),(1,[2,0]),(2,[3,1]),(3,[4,2]),(4,[5,3]),(5,[4])]",
        "Dcolor: 2 (3,3) TIE Dsatur: 2 (3,3) TIE LF: 2 (3,3)",
    ]


def test_no_neighbours_have_the_same_colour() -> None:
    rng = random.Random(7)  # noqa: S311 - no secrets here
    for _ in range(50):
        size, graph = rng.randrange(1, 30), dict[int, list[int]]()
        graph = {vertex: [] for vertex in range(3, 3 + size)}
        for one, other in ((rng.choice([*graph]), rng.choice([*graph])) for _ in range(rng.randrange(4 * size))):
            graph[one].append(other)
            graph[other].append(one)
        for _, colours in colour_nodes(graph):
            assert sorted(vertex for together in colours for vertex in together) == [*graph]
            assert not any(
                one != other and other in graph[one] for together in colours for one in together for other in together
            )


def test_a_thousand_nodes_take_seconds() -> None:
    rng = random.Random(3)  # noqa: S311 - no secrets here
    nodes = [f"n{place}|65536|0|45056|4000000|3900000|32|{'N' if place else 'M'}|u|1|" for place in range(1000)]
    rows = []
    for number in range(10_000):
        primary, secondary = rng.sample(range(1000), 2)
        rows.append(f"i{number}|2048|1000|1|running|Y|n{primary}|n{secondary}|drbd|")
    Path("large.data").write_text("\n".join(["g|u|preferred||\n", *nodes, "", *rows, "\n\n"]))
    begin = monotonic()
    code, out, _ = call("hroller", "-t", "large.data", "--no-headers")
    assert code == 0
    assert sorted(out.replace("\n", ",").split(",")[:-1]) == sorted(f"n{place}" for place in range(1000))
    assert monotonic() - begin < 30
