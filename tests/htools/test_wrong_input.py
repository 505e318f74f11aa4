"""Wrong input ends with the original's message and exit code, never in a traceback."""

from __future__ import annotations

import random
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

from gpolicy import htools
from gpolicy.errors import InputError, RequestError
from gpolicy.ganeti.htools_reading import parse_float, parse_int, parse_size, wrapped
from tests.htools.random_requests import make_case
from tests.htools.recorded import call
from tests.processor_time import takes_less

if TYPE_CHECKING:
    from pathlib import Path

GROUP = "g0|u0|preferred||\n"
NODES = "n1|1024|0|1024|10000|10000|4|N|u0\nn2|1024|0|1024|10000|10000|4|N|u0\n"
LOAD = "Error: failed to load data, aborting: "
SPEC = "128,1,1024,1,1,1"

TEXTS = {
    "empty file": ("", "Invalid format of the input file: 0 sections instead of 4 or more"),
    "one line": ("x\n", "Invalid format of the input file: 1 sections instead of 4 or more"),
    "truncated": (f"{GROUP}\n{NODES}", "Invalid format of the input file: 2 sections instead of 4 or more"),
    "group columns": (f"g0|u0\n\n{NODES}\n\n", """Invalid/incomplete group data: '["g0","u0"]'"""),
    "policy name": ("g0|u0|pref||\n\n\n\n", 'Invalid string value for type AllocPolicy: "pref"'),
    "node columns": (
        f"{GROUP}\nn1|1|2|3|4|5|6|N\n\n\n",
        """Invalid/incomplete node data: '["n1","1","2","3","4","5","6","N"]'""",
    ),
    "leftover": (f"{GROUP}\nn1|1024|0x|1|1|1|4|N|u0\n\n\n", "n1: leftover characters when parsing '0x': 'x'"),
    "not an int": (f"{GROUP}\nn1|1024|1.5|1|1|1|4|N|u0\n\n\n", "n1: cannot parse string '1.5'"),
    "not a double": (f"{GROUP}\nn1|.5|1|1|1|1|4|N|u0\n\n\n", "n1: cannot parse string '.5'"),
    "plus sign": (f"{GROUP}\nn1|1024|+1|1|1|1|4|N|u0\n\n\n", "n1: cannot parse string '+1'"),
    "unknown group": (f"{GROUP}\nn1|1|1|1|1|1|4|N|ux\n\n\n", "Unknown group 'ux' for node n1"),
    "exclusive storage": (
        f"{GROUP}\nn1|1|1|1|1|1|4|N|u0|1||X\n\n\n",
        "Invalid exclusive_storage value for node 'n1': X",
    ),
    "blanks behind": (
        f"{GROUP}\nn1| 1024 |1|1|1|1|4|N|u0\n\n\n",
        "n1: leftover characters when parsing ' 1024 ': ' '",
    ),
    "instance columns": (
        f"{GROUP}\n{NODES}\ni|1|2|3|running|Y|n1||plain\n\n",
        """Invalid/incomplete instance data: '["i","1","2","3","running","Y","n1","","plain"]'""",
    ),
    "instance state": (
        f"{GROUP}\n{NODES}\ni|1|2|3|runn|Y|n1||plain|\n\n",
        'Invalid string value for type InstanceStatus: "runn"',
    ),
    "auto balance": (
        f"{GROUP}\n{NODES}\ni|1|2|3|running|Q|n1||plain|\n\n",
        "Invalid auto_balance value 'Q' for instance i",
    ),
    "unknown node": (
        f"{GROUP}\n{NODES}\ni|1|2|3|running|Y|n3||plain|\n\n",
        "Unknown node 'n3' for instance i",
    ),
    "unknown secondary": (
        f"{GROUP}\n{NODES}\ni|1|2|3|running|Y|n1|n7|plain|\n\n",
        "Unknown node 'n7' for instance i",
    ),
    "same nodes": (
        f"{GROUP}\n{NODES}\ni|1|2|3|running|Y|n1|n1|drbd|\n\n",
        "Instance i has same primary and secondary node - n1",
    ),
    "template": (
        f"{GROUP}\n{NODES}\ni|1|2|3|running|Y|n1|n1|plainx|\n\n",
        'Instance i: Invalid string value for type DiskTemplate: "plainx"',
    ),
    "forthcoming": (
        f"{GROUP}\n{NODES}\ni|1|2|3|running|Y|n1||plain||1|-|Z\n\n",
        "Invalid forthcoming value 'Z' for instance i",
    ),
    "ipolicy columns": (f"{GROUP}\n{NODES}\n\n\n|1|2\n", """Invalid ipolicy data: '["","1","2"]'"""),
    "ipolicy owner": (
        f"{GROUP}\n{NODES}\n\n\ngx|{SPEC}|{SPEC};{SPEC}|plain|4|32\n",
        "Wrong number of elems found with name gx",
    ),
    "odd specs": (
        f"{GROUP}\n{NODES}\n\n\n|{SPEC}|{SPEC}|plain|4|32\n",
        "Odd number of min/max specs for ",
    ),
    "spec value": (
        f"{GROUP}\n{NODES}\n\n\ng0|{SPEC}|{SPEC};1,a,1,1,1,1|plain|4|32\n",
        "g0/maxspec/cpucount: cannot parse string 'a'",
    ),
    "ratio": (
        f"{GROUP}\n{NODES}\n\n\n|{SPEC}|{SPEC};{SPEC}|plain|x|32\n",
        "/vcpu_ratio: cannot parse string 'x'",
    ),
}


@pytest.mark.parametrize(("text", "message"), TEXTS.values(), ids=TEXTS)
def test_text_files(text: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "cluster"
    path.write_text(text)
    assert call("hspace", "-t", str(path)) == (1, "", f"{LOAD}{message}\n")


OPTIONS: dict[str, tuple[list[str], int, str]] = {
    "no backend": ([], 1, f"{LOAD}No backend selected! Exiting."),
    "missing file": (
        ["-t", "nofile"],
        1,
        f"{LOAD}nofile: openFile: does not exist (No such file or directory)",
    ),
    "argument": (["-t", "c", "x"], 1, "Error: This program doesn't take any arguments."),
    "two sources": (
        ["-t", "c", "-m", "x"],
        1,
        "Error: Only one of the rapi, luxi, and data files options should be given.",
    ),
    "unknown option": (["--foo"], 2, "Command line error: unrecognized option `--foo'"),
    "missing argument": (["-l"], 2, "Command line error: option `-l' requires an argument N"),
    "no argument allowed": (
        ["--accept-existing=1"],
        2,
        "Command line error: option `--accept-existing' doesn't allow an argument",
    ),
    "limit": (
        ["-l", "1x"],
        1,
        (
            "Error while parsing command line arguments:\n"
            "max solution length: leftover characters when parsing '1x': 'x'"
        ),
    ),
    "max cpu": (
        ["--max-cpu=-2"],
        1,
        "Error while parsing command line arguments:\nInvalid value of the max-cpu ratio, expected >0",
    ),
    "choice": (
        ["--machine-readable=maybe"],
        1,
        "Error while parsing command line arguments:\nInvalid choice 'maybe', pass one of 'yes' or 'no'",
    ),
    "size": (
        ["--tiered-alloc=1g,2q,1"],
        1,
        "Error while parsing command line arguments:\ntiered specs memory: Unknown unit 'q'",
    ),
    "simulation": (
        ["--simulate=p,2"],
        1,
        (
            f"{LOAD}Invalid cluster specification, expected 6 comma-separated sections (allocation policy,"
            " node count, disk size, memory size, number of CPUs, spindles) but got 2: 'p,2'"
        ),
    ),
    "offline nodes": (
        ["--simulate=p,2,9g,4g,5", "-O", "foo", "-O", "bar"],
        1,
        "Error: wrong node name(s) set as offline: bar,foo",
    ),
}


@pytest.mark.parametrize(("options", "code", "message"), OPTIONS.values(), ids=OPTIONS)
def test_options(options: list[str], code: int, message: str) -> None:
    exit_code, out, err = call("hspace", *options)
    assert (exit_code, out) == (code, "")
    assert err.startswith(f"{message}\n")


def document(**more: Any) -> dict[str, Any]:
    return {
        "request": {"type": "allocate", "name": "x"},
        "nodegroups": {},
        "nodes": {},
        "instances": {},
        "cluster_tags": [],
        "enabled_hypervisors": ["fake"],
        **more,
    }


INVALID = "Error: invalid iallocator message: "
DOCUMENTS: dict[str, tuple[Any, str]] = {
    "list": ([], "Error: Parsing input IAllocator message: Unable to read JSObject"),
    "no request": ({}, f"{INVALID}key 'request' not found, object contains only []"),
    "request kind": ({"request": 3}, f"{INVALID}key 'request': Unable to read JSObject"),
    "no groups": (
        {"request": {}},
        f"""{INVALID}key 'nodegroups' not found, object contains only ["request"]""",
    ),
    "no type": (
        document(request={}),
        "Error: invalid request dict: key 'type' not found, object contains only []",
    ),
    "bad type": (document(request={"type": "foo"}), "Error: Invalid request type 'foo'"),
    "required nodes": (
        document(),
        ('Error: invalid request dict: key \'required_nodes\' not found, object contains only ["type","name"]'),
    ),
    "cluster tags": (document(cluster_tags=[3]), f"{INVALID}key 'cluster_tags': Unable to read String"),
    "hypervisor": (
        document(enabled_hypervisors=["x"]),
        f"""{INVALID}key 'enabled_hypervisors': Invalid string value for type Hypervisor: "x\"""",
    ),
    "group policy": (
        document(nodegroups={"u": {"name": "g", "alloc_policy": 3}}),
        (
            "Error: invalid data for group 'u': key 'alloc_policy': Can't parse value for 'AllocPolicy':"
            " Unable to read String"
        ),
    ),
    "node entry": (document(nodes={"n": 3}), "Error: not an object"),
}


@pytest.mark.parametrize(("value", "message"), DOCUMENTS.values(), ids=DOCUMENTS)
def test_iallocator_documents(value: Any, message: str, tmp_path: Path) -> None:
    import json

    path = tmp_path / "request.json"
    path.write_text(json.dumps(value))
    assert call("hail", str(path)) == (1, "", f"{message}\n")


@pytest.mark.parametrize(
    "text", ["", "{", "nope", '{"a":NaN}', '{"request":1e999}', "[" * 100000, '{"a":"\\ud800"}', "{} {}"]
)
def test_broken_json_is_one_clear_line(text: str, tmp_path: Path) -> None:
    path = tmp_path / "request.json"
    path.write_text(text)
    code, out, err = call("hail", str(path))
    assert (code, out) == (1, "")
    assert err.startswith("Error: ")
    assert len(err.splitlines()) == 1


@pytest.mark.parametrize(
    "node",
    [
        "n1|NaN|0|1024|10000|10000|4|N|u0",
        "n1|Infinity|0|1024|1e400|10000|4|N|u0",
        "n1|1e300|99999999999999999999|1024|10000|9223372036854775807|4|N|u0",
        "n1|-1024|-1|-1|-10000|-1|-4|N|u0",
        "n1|0|0|0|0|0|0|N|u0",
    ],
)
@pytest.mark.parametrize("template", ["drbd", "plain", "diskless"])
def test_unusual_numbers_are_read(node: str, template: str, tmp_path: Path) -> None:
    path = tmp_path / "cluster"
    path.write_text(f"{GROUP}\n{node}\n{NODES}\n\n\n".replace("\nn1|1024", "\nn3|1024"))
    code, _, err = call("hspace", "-t", str(path), f"--disk-template={template}", "-l", "5", "--machine-readable")
    assert code in {0, 1}
    assert "Traceback" not in err


@pytest.mark.parametrize("seed", range(60))
def test_damaged_files_end_in_an_answer_or_an_error(seed: int, tmp_path: Path) -> None:
    """Cut, doubled and scrambled input: exit code 0 or 1, and for 1 a line that begins with Error."""
    rng = random.Random(seed)  # noqa: S311 - no secrets here
    case = make_case("allocate", seed, 4)
    request = case.document
    place = rng.randrange(len(case.cluster))
    text = case.cluster[:place] + rng.choice(["", "|", "\n", "-", "x", "1e9", "NaN"]) + case.cluster[place + 1 :]
    path = tmp_path / "cluster"
    path.write_text(text if rng.random() < 0.7 else text[: rng.randrange(len(text))])
    code, _, err = call("hspace", "-t", str(path), "--machine-readable", "-l", "2", "--disk-template=drbd")
    assert code == 0 or (code == 1 and "Error: " in err)
    place = rng.randrange(len(request))
    document_path = tmp_path / "request.json"
    document_path.write_text(request[:place] + rng.choice(["", "[", "0", "null"]) + request[place + 1 :])
    code, _, err = call("hail", "-t", str(path), str(document_path))
    assert code == 0 or (code == 1 and "Error: " in err)


LONG = "1" * 5000


def test_numbers_of_any_length_wrap_as_64_bit_integers(tmp_path: Path) -> None:
    """As the original reads them; Python alone would refuse so many digits. What no cluster has is then refused."""
    whole = int(LONG[:4000]) * 10**1000 + int(LONG[:1000])
    assert parse_int("x", LONG) == wrapped(whole)
    assert parse_int("x", f"-{LONG}") == wrapped(-whole)
    assert parse_float("x", LONG) == float("inf")
    path = tmp_path / "cluster"
    path.write_text(f"{GROUP}\n{NODES}n3|{LONG}|{LONG}|{LONG}|1|{LONG}|4|N|u0\n\n\n\n")
    code, out, err = call("hspace", "-t", str(path), "--disk-template=plain", "-l", LONG, "-pname,tmem,nmem", "-l", "1")
    assert code == 1
    assert f"Infinity {wrapped(whole)}\n" in err
    assert err.endswith("Error: node n3: its memory is inf: no cluster has more than 2199023255552\n")
    assert out.startswith("The cluster has 3 nodes")


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("18446744073709552640", 1024),  # recorded: a number wraps before its unit counts
        ("18446744073709552640M", 976),
        ("-18446744073709552640M", -976),
        ("18446744073709552640g", 1048576),
        ("18446744073709552640mb", 976),
        ("5TiB", 5 * 1024**2),
        ("2T", 1907348),
    ],
)
def test_sizes(text: str, size: int) -> None:
    assert parse_size("x", text) == size


def test_blanks_are_those_of_the_original() -> None:
    assert parse_int("x", "\u00a0\t -\u20035") == -5
    with pytest.raises(InputError):
        parse_int("x", "\u20285")


@pytest.mark.parametrize("text", ["\n" * 200_000, f"-{' ' * 200_000}", "1" * 200_000 + "x", "1." + "1" * 200_000 + "e"])
def test_long_texts_are_refused_at_once(text: str) -> None:
    def refuse() -> None:
        for parse in (parse_int, parse_float, parse_size):
            with pytest.raises(InputError):
                parse("x", text)

    assert takes_less(0.5, refuse)


def test_standard_input_may_hold_any_bytes() -> None:
    arguments = [sys.executable, "-m", "gpolicy", "htools", "hail", "-"]
    done = subprocess.run(arguments, input=b"{\xff", capture_output=True, check=False)
    assert done.returncode == 1
    assert done.stderr.startswith(b"Error: Parsing input IAllocator message: ")


def test_help_names_both_programs() -> None:
    code, out, _ = call("--help")
    assert code == 0
    assert "hspace" in out
    assert "hail" in out


def test_another_program_is_a_usage_error() -> None:
    with pytest.raises(RequestError):
        htools.run(["hcheck"])
    with pytest.raises(RequestError):
        htools.run([])
