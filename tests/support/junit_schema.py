"""The intersection of Jenkins' two JUnit schemas as a strict check: whatever one of them forbids is an error."""

import re
from typing import Any
from xml.etree import ElementTree

# Per element: required attributes, optional attributes, and child elements in the required order.
_ELEMENTS: dict[str, tuple[set[str], set[str], tuple[str, ...]]] = {
    "testsuites": (set(), {"name", "time", "tests", "failures", "errors"}, ("testsuite",)),
    "testsuite": (
        {"name", "tests", "failures", "errors"},
        {"time", "skipped", "timestamp", "hostname", "id", "package"},
        ("properties", "testcase", "system-out", "system-err"),
    ),
    "properties": (set(), set(), ("property",)),
    "property": ({"name", "value"}, set(), ()),
    "testcase": ({"name"}, {"time", "classname"}, ("skipped", "error", "failure", "system-out", "system-err")),
    "skipped": (set(), set(), ()),
    "error": (set(), {"message", "type"}, ()),
    "failure": (set(), {"message", "type"}, ()),
    "system-out": (set(), set(), ()),
    "system-err": (set(), set(), ()),
}
_ONCE = {"properties", "skipped"}
_OF_TEXT = {"skipped", "error", "failure", "system-out", "system-err"}


def checked_junit(path: Any) -> Any:
    """Return the root of a file after checking it against the schemas, and its counts and times against its cases."""
    root = ElementTree.parse(path).getroot()
    assert root.tag == "testsuites"
    _check(root)
    for suite in root:
        _check_counts(suite, list(suite.iter("testcase")))
        skipped = sum(case.find("skipped") is not None for case in suite.iter("testcase"))
        assert suite.get("skipped") == str(skipped)
    _check_counts(root, list(root.iter("testcase")))
    return root


def _check(element: Any) -> None:
    required, further, children = _ELEMENTS[element.tag]
    assert required <= set(element.attrib) <= required | further, (element.tag, element.attrib)
    tags = [child.tag for child in element]
    assert tags == sorted(tags, key=children.index), (element.tag, tags)
    assert not any(tags.count(tag) > 1 for tag in _ONCE)
    assert element.tag != "properties" or tags
    assert element.tag in _OF_TEXT or not (element.text or "").strip()
    assert not (element.tail or "").strip()
    if element.get("time") is not None:
        assert re.fullmatch(r"\d+\.\d{3}", element.get("time"))
    for child in element:
        _check(child)


def _check_counts(element: Any, cases: list[Any]) -> None:
    assert element.get("tests") == str(len(cases))
    assert element.get("failures") == str(sum(case.find("failure") is not None for case in cases))
    assert element.get("errors") == str(sum(case.find("error") is not None for case in cases))
    assert abs(float(element.get("time")) - sum(float(case.get("time")) for case in cases)) < 0.001 * (len(cases) + 1)
    names = [(case.get("classname"), case.get("name")) for case in cases]
    assert len(names) == len(set(names))  # GitLab keeps only the first of several cases with the same name
