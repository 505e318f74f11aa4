"""What hbal says of wrong options and files, and what it writes beside its answer."""

from __future__ import annotations

import json
import random
import subprocess
from pathlib import Path

import pytest

from gpolicy.htools.text_format import parse_cluster
from tests.htools.random_requests import document
from tests.htools.recorded import call

# four equal nodes, two equal pairs on the first two of them
NODES = "".join(
    f"n{place}.ex|4096|0|{3072 if place == 0 else 4096}|40000|{37952 if place < 2 else 40000}|8|N|u0\n"
    for place in range(4)
)
PAIRS = "".join(f"i{number}.ex|512|1024|1|running|Y|n0.ex|n1.ex|drbd|\n" for number in range(2))
CLUSTER = f"g|u0|preferred||\n\n{NODES}\n{PAIRS}\n\n"
STEPS = [
    "    1. i0 n0:n1 => n2:n1   2.45768239 a=f r:n2 f",
    "    2. i0 n2:n1 => n2:n3   1.75000000 a=r:n3",
]


@pytest.fixture(autouse=True)
def _files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("c.data").write_text(CLUSTER)
    other = "n4.ex|4096|0|4096|40000|40000|8|N|u1\n"
    Path("two.data").write_text(CLUSTER.replace("||\n\n", "||\nh|u1|last_resort||\n\n").replace(NODES, NODES + other))
    Path("short.util").write_text("i0.ex 1 2 3\n")
    Path("word.util").write_text("i0.ex 1 2 3 x\n")
    Path("list.json").write_text("{}")
    Path("report.json").write_text(json.dumps([{"node": "n0.ex", "reports": []}]))


def test_the_steps_commands_and_job_sets() -> None:
    code, out, err = call("hbal", "-t", "c.data", "-C")
    assert (code, err) == (0, "")
    assert out.splitlines()[-16:] == [
        *STEPS,
        "Cluster score improved from 4.04218574 to 1.75000000",
        "Solution length=2",
        "",
        "Commands to run to reach the above solution:",
        "  ",
        "  echo jobset 1, 1 jobs",
        "    echo job 1/1",
        "    gnt-instance migrate -f i0",
        "    gnt-instance replace-disks -n n2 i0",
        "    gnt-instance migrate -f i0",
        "  ",
        "  echo jobset 2, 1 jobs",
        "    echo job 2/1",
        "    gnt-instance replace-disks -n n3 i0",
    ]


@pytest.mark.parametrize(
    ("options", "code", "err"),
    [
        (("-t", "c.data", "x"), 1, "Error: This program doesn't take any arguments.\n"),
        ((), 1, "Error: failed to load data, aborting: No backend selected! Exiting.\n"),
        (
            ("-t", "c.data", "-m", "x"),
            1,
            "Error: Only one of the rapi, luxi, and data files options should be given.\n",
        ),
        (("-t", "two.data"), 1, "Found multiple node groups:\n  g\n  h\nError: Aborting.\n"),
        (
            ("-t", "two.data", "-G", "k"),
            1,
            "Node group k not found. Node group list is:\n  g\n  h\nError: Aborting.\n",
        ),
        (
            ("-t", "c.data", "-O", "zz", "-O", "nobody"),
            1,
            "Error: wrong node name(s) set as offline: nobody,zz\n\n",
        ),
        (
            ("-t", "c.data", "--exclude-instances=b", "--select-instances=a"),
            1,
            'Error: failed to load data, aborting: Unknown instance(s): ["a","b"]\n',
        ),
        (("-t", "c.data", "-U", "none"), 1, "hbal: none: openFile: does not exist (No such file or directory)\n"),
        (("-t", "c.data", "-Cno/file"), 1, "hbal: no/file: openFile: does not exist (No such file or directory)\n"),
        (
            ("-t", "c.data", "-U", "short.util"),
            1,
            "Error: can't parse utilisation data: Cannot parse line i0.ex 1 2 3\n",
        ),
        (
            ("-t", "c.data", "-U", "word.util"),
            1,
            "Error: can't parse utilisation data: i0.ex: cannot parse string 'x'\n",
        ),
        (
            ("-t", "c.data", "--mond", "--mond-data=list.json"),
            1,
            "Error: can't parse MonD data: Parsing MonD's answer: Unable to read list\n",
        ),
        (
            ("-t", "c.data", "--mond", "--mond-data=report.json"),
            0,
            "Didn't receive an answer by all MonDs, cpu-avg-load's data will be ignored.\n",
        ),
        (
            ("-t", "c.data", "--mond", "--mond-data=report.json", "--exit-on-missing-mond-data"),
            1,
            (
                "Didn't receive an answer by all MonDs, cpu-avg-load's data will be ignored.\n"
                "Error: Not all required data available\n"
            ),
        ),
        (
            ("-t", "c.data", "--mond"),
            1,
            (
                "Error: --mond: gpolicy does not query monitoring daemons; write their answers to a file and name it"
                " with --mond-data=FILE\n"
            ),
        ),
        (
            ("-t", "c.data", "-X"),
            1,
            "Error: hbal: Execution of commands possible only on LUXI\n",
        ),
        (
            ("-L", "-X"),
            1,
            (
                "Error: failed to load data, aborting: luxi: this socket is for Ganeti's own programs; use -m (RAPI),"
                " -t (text) or -I (iallocator); instead of -X, write the commands to a file (-CFILE) and run it on the"
                " master\n"
            ),
        ),
        (("-l", "x"), 1, "Error while parsing command line arguments:\nmax solution length: cannot parse string 'x'\n"),
        (("--priority=foo",), 1, "Error while parsing command line arguments:\nUnknown priority 'foo'\n"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_what_is_wrong_is_said(options: tuple[str, ...], code: int, err: str) -> None:
    found, _, said = call("hbal", *options)
    assert (found, said) == (code, err)


def test_an_unknown_option_is_a_usage_error() -> None:
    code, out, err = call("hbal", "--evacuate-all")
    assert (code, out) == (2, "")
    assert err.startswith("Command line error: unrecognized option `--evacuate-all'\n")


def test_an_empty_cluster() -> None:
    Path("empty.data").write_text("g|u0|preferred||\n\nn|4096|0|4096|40000|40000|8|N|u0\n\n\n\n")
    assert call("hbal", "-t", "empty.data") == (0, "Cluster is empty, exiting.\n", "")


def test_a_balanced_group() -> None:
    code, out, _ = call("hbal", "-t", "c.data", "-e", "5")
    assert (code, out.splitlines()[-4:]) == (
        0,
        [
            "Cluster is already well balanced (initial score 4.042186,",
            "optimum score due to N+1 reservations 5.208333e-3,",
            "minimum score 5.000000).",
            "Nothing to do, exiting",
        ],
    )


def test_the_script_is_one_for_a_shell_and_quotes_names() -> None:
    Path("odd.data").write_text(CLUSTER.replace("i0.ex", "i0;touch hacked.ex"))
    code, out, _ = call("hbal", "-t", "odd.data", "-Cmoves.sh")
    assert (code, out.splitlines()[-1]) == (0, "The commands have been written to file 'moves.sh'")
    Path("gnt-instance").write_text('#!/bin/sh\necho "$@" >>done\n')
    Path("gnt-instance").chmod(0o755)
    done = subprocess.run(["/bin/sh", "moves.sh"], env={"PATH": ".:/usr/bin:/bin"}, capture_output=True, check=False)
    assert (done.returncode, done.stderr) == (0, b"")
    assert done.stdout.split(b"\n")[:2] == [b"jobset 1, 1 jobs", b"job 1/1"]
    assert Path("done").read_text().splitlines()[:2] == [
        "migrate -f i0;touch hacked",
        "replace-disks -n n2 i0;touch hacked",
    ]
    assert not Path("hacked").exists()


def test_an_iallocator_document_counts_each_instance_twice() -> None:
    request = {"type": "node-evacuate", "instances": [], "evac_mode": "all"}
    made = document(random.Random(1), parse_cluster(CLUSTER), request)  # noqa: S311 - no secrets here
    Path("r.json").write_text(json.dumps(made))
    code, out, err = call("hbal", "-I", "r.json", "-l", "0", "-pname,pcnt")
    assert code == 0
    assert "Loaded 4 nodes, 2 instances" in out
    assert " n0      4\n" in err
