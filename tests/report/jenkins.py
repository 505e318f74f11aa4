"""What Jenkins' xUnit plugin takes as a JUnit report: elements, attributes and order of its schema junit-10.xsd."""

from __future__ import annotations

import xml.etree.ElementTree as ET

_PROBLEM = ({"message", "type"}, set[str](), set[str]())
_ELEMENTS = {
    "testsuites": ({"name", "time", "tests", "failures", "errors"}, set[str](), {"testsuite"}),
    "testsuite": (
        {
            *("name", "tests", "failures", "errors", "skipped", "group", "time", "timestamp", "hostname", "id"),
            *("package", "file", "log", "url"),
        },
        {"name", "tests", "failures", "errors"},
        {"testsuite", "properties", "testcase", "system-out", "system-err"},
    ),
    "testcase": (
        {"name", "time", "classname", "group"},
        {"name"},
        {"skipped", "error", "failure", "system-out", "system-err"},
    ),
    "failure": _PROBLEM,
    "error": _PROBLEM,
    "skipped": _PROBLEM,
    "system-out": (set[str](), set[str](), set[str]()),
}
"""The attributes that an element may have, those that it must have, and what may be inside."""

_WITH_TEXT = {"failure", "error", "skipped", "system-out"}


def accepted_by_jenkins(root: ET.Element) -> None:
    """Fail if the schema does not accept a report."""
    assert root.tag in {"testsuites", "testsuite"}
    for element in root.iter():
        allowed, required, inside = _ELEMENTS[element.tag]
        assert required <= set(element.attrib) <= allowed, element.tag
        assert {child.tag for child in element} <= inside, element.tag
        if element.tag not in _WITH_TEXT:
            assert not (element.text or "").strip()
