"""What went wrong, by kind: unknown tools, failed questions, failed calls and judges, and warnings of the capture."""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from graphrag_eval_lc.config import EvaluationConfig
from graphrag_eval_lc.matching.unknown_tools import UnknownTools
from graphrag_eval_lc.registry.metrics import error_keys, registered_metrics
from graphrag_eval_lc.report.samples import ReportedSample
from graphrag_eval_lc.report.texts import one_line

_EXAMPLE = 600
_KIND = 100
_STEP_ERRORS = error_keys("steps")
_CLASS = re.compile(r"([A-Za-z_][\w.]*(?:Error|Exception|Timeout|Interrupt|Exit|Group|Cancelled))(?=[:(\s]|$)")
# Ids, numbers and what stands in quotes or brackets make no kind of their own.
_PARTICULAR = re.compile(r"""\([^()]*\)|'[^']*'|"[^"]*"|\S*\d\S*""")


@dataclass(slots=True)
class _Group:
    example: str
    count: int = 0
    questions: dict[str, None] = field(default_factory=dict)


class Problems:
    """Groups what went wrong.

    Args:
        config: The configuration, for the names of custom evaluations.
        functions: The names of the functions that judged.
        reference_names: The names of the dataset's reference steps, beside those that the samples have.
    """

    def __init__(
        self, config: EvaluationConfig, functions: Iterable[str] = (), reference_names: Iterable[str] = ()
    ) -> None:
        custom = [evaluation.name for evaluation in config.custom_evaluations or ()]
        own = dict.fromkeys((*custom, *functions, *registered_metrics()))
        self._error_keys = (*error_keys("questions"), *(f"{name}_error" for name in own))
        self._errors: dict[tuple[str, str], _Group] = {}
        self._warnings: dict[str, _Group] = {}
        self._unknown_tools = UnknownTools(config, reference_names)
        self._calling: dict[str, _Group] = {}  # by tool, of those that are unknown

    def add(self, sample: ReportedSample) -> None:
        """Take up a sample."""
        if sample.has_failed:
            error = sample.result.get("error") or "failed without a message"
            self._add("question", kind_of(error), error, sample.key)
        for step in sample.result.get("actual_steps") or ():
            name = one_line(step.get("name"), _KIND)
            if step.get("status") == "error":
                self._add("call", f"{name}: {kind_of(step.get('error'))}", step.get("error"), sample.key)
            elif step.get("comparison_error") is not None:
                why = step["comparison_error"]
                self._add("call", f"{name}: output that cannot be compared", why, sample.key)
        for judge, error in _judge_errors(sample.result, self._error_keys):
            self._add("judge", f"{judge}: {kind_of(error)}", error, sample.key)
        for warning in sample.result.get("capture_warnings") or ():
            group = self._warnings.setdefault(_general(warning), _Group(one_line(warning, _EXAMPLE)))
            _count(group, sample.key)

        self._add_tools(sample)

    def errors(self) -> list[dict[str, Any]]:
        """Give the section ``errors``: unknown tools, then failed questions, then the most frequent."""
        order = ("question", "call", "judge")
        groups = sorted(self._errors.items(), key=lambda item: (order.index(item[0][0]), -item[1].count))
        errors = [{"where": where, "kind": kind, **_record(group)} for (where, kind), group in groups]
        return [*self._tools(), *errors]

    def tool_warnings(self) -> list[str]:
        """Give what is to be known of tools whose names no reference step has, before a score is trusted."""
        return [str(tool) for tool in self._unknown_tools.found()]

    def capture_warnings(self) -> list[dict[str, Any]]:
        """Give the section ``capture_warnings``, the most frequent first."""
        groups = sorted(self._warnings.items(), key=lambda item: -item[1].count)
        return [{"kind": kind, **_record(group)} for kind, group in groups]

    def _add_tools(self, sample: ReportedSample) -> None:
        self._unknown_tools.add(sample.result.get("reference_steps"), sample.result)
        tools = {str(step.get("name")) for step in sample.result.get("actual_steps") or ()}
        for tool in tools:
            if not self._unknown_tools.knows(tool):
                _count(self._calling.setdefault(tool, _Group("")), sample.key)

    def _tools(self) -> Iterator[dict[str, Any]]:
        for unknown in self._unknown_tools.found():
            keys = dict.fromkeys(key for tool in unknown.tools for key in self._calling[tool].questions)
            group = _Group(one_line(str(unknown), _EXAMPLE), len(keys), keys)
            kind = f"{', '.join(unknown.tools)}: no reference step has that name"
            yield {"where": "name", "kind": one_line(kind, _KIND), **_record(group)}

    def _add(self, where: str, kind: str, example: Any, key: str) -> None:
        _count(self._errors.setdefault((where, kind), _Group(one_line(example, _EXAMPLE))), key)


def _count(group: _Group, key: str) -> None:
    group.count += 1
    group.questions[key] = None


def _record(group: _Group) -> dict[str, Any]:
    return {"count": group.count, "example": group.example, "questions": list(group.questions)}


def kind_of(error: Any) -> str:
    """Give the kind of an error: the class that its text begins with, else the text without what is particular.

    Example:
        >>> kind_of("ValueError: no row 7"), kind_of("Client error '400' for row 7 of x")
        ('ValueError', 'Client error … for row … of x')
    """
    text = str(error)
    named = _CLASS.match(text)
    return one_line(named[1], _KIND) if named else _general(text)


def _general(text: Any) -> str:
    return one_line(_PARTICULAR.sub("…", one_line(text, 2 * _KIND)), _KIND)


def _judge_errors(result: Mapping[str, Any], keys: Iterable[str]) -> Iterator[tuple[str, str]]:
    for key in keys:
        if isinstance(error := result.get(key), str):
            yield one_line(key.removesuffix("_error"), _KIND), error
    for step in result.get("actual_steps") or ():
        for key, error in step.items():
            if key in _STEP_ERRORS and isinstance(error, str):
                yield key.removesuffix("_error"), error
