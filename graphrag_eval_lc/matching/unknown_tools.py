"""Finds tools that lose scores because no reference step has their name, and suggests the right name."""

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache, partial
from itertools import chain, product
from typing import Any

import yaml

from graphrag_eval_lc.config import EvaluationConfig
from graphrag_eval_lc.errors import MatcherError
from graphrag_eval_lc.matching.matchers import Step, StepView, UnreadableOutput, comparison_of
from graphrag_eval_lc.matching.retrieval import parse_document_ids
from graphrag_eval_lc.matching.rows import SPARQL_RESULTS
from graphrag_eval_lc.matching.rows.json_forms import SINGLE_FORMS
from graphrag_eval_lc.matching.rows.row_steps import step_results
from graphrag_eval_lc.matching.step_views import StepViews
from graphrag_eval_lc.matching.steps import scored_groups
from graphrag_eval_lc.records import is_error, step_status
from graphrag_eval_lc.registry.step_kinds import have_other_meanings, names_that_fulfil
from graphrag_eval_lc.texts import counted, listed, on_one_line, shortened

# How many responses are examined for each tool and reference name, and how many steps of each response.
_LOOKED_AT = 5
_STEPS_LOOKED_AT = 3
_ALIKE = 0.6
# A good agent may miss a step in one or two questions and call tools that no reference needs: that is not reported.
_FEWEST_UNEXPLAINED = 3
RECORDED_CALLS = (
    "calls are recorded only if they go through LangChain or are in the messages that the agent returns; nodes "
    "that run queries without a tool can be named in `capture: {nodes: …}`"
)
_short = partial(shortened, length=80)

_WORD = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|\d+")
# Words of tool names that do not say what the tool returns.
_GENERIC = frozenset({"a", "call", "do", "execute", "fetch", "find", "get", "my", "run", "the", "tool", "use"})


@dataclass(frozen=True, slots=True)
class UnknownTool:
    """A tool whose name no reference step has (several if they are equally likely), what is wrong, and the fix.

    ``suggestion`` is the name that the tool should probably be given; None if no name fits.
    """

    tools: tuple[str, ...]
    suggestion: str | None
    what: str
    hint: str

    @on_one_line
    def __str__(self) -> str:
        return f"{self.what}; {self.hint}"


class UnknownTools:
    """Finds tools whose names no reference step has, if that explains lost scores.

    Many agents have tools that no reference needs. A tool is therefore reported only if a scored reference step has a
    name that no response calls, and a response that misses this step calls the tool. A name is suggested if the tool's
    outputs would fulfil the reference steps, if they have the same form, or if the names are similar. Without a
    suggestion, the step must be missing in three responses. ``reference_names`` are the names in other questions.
    """

    def __init__(self, config: EvaluationConfig, reference_names: Iterable[str] = ()) -> None:
        self._config = config
        self._views = StepViews(config.steps, config.sparql, config.retrieval)
        self._responses = 0
        self._asking: Counter[str] = Counter()  # by reference name: responses to questions that score such a step
        self._calling: Counter[str] = Counter()  # by tool: responses that call it
        self._names: dict[str, bool] = {}  # by reference name: whether a response calls a tool that fulfils it
        self._tools: dict[str, bool] = {}  # by tool: whether it fulfils steps of some reference name
        # By tool and reference name: how well the tool fits (see _fit) in each response that was examined.
        self._fits: dict[tuple[str, str], list[int]] = {}
        self._learn(reference_names, ())

    def add(self, reference_steps: Any, response: Mapping[str, Any]) -> None:
        """Add a response, or its result, with the groups of reference steps of its question."""
        if not reference_steps and not response.get("actual_steps"):
            self._responses += not is_error(response)
            return
        called = _by_name(response.get("actual_steps"))
        if not called and is_error(response):
            return
        groups = [_by_name(group) for group in _items(reference_steps)]
        scored = [groups[at] for at in scored_groups(groups, self._config.steps.counted)]
        names = set(chain.from_iterable(scored))
        self._learn(chain.from_iterable(groups), called)
        self._responses += 1
        for tool in called:
            self._calling[tool] += 1
        for name in names:
            self._asking[name] += 1
        for name, tool in product(names, called):
            if self._names[name] or self._tools[tool]:
                continue
            fits = self._fits.setdefault((tool, name), [])
            references = [step for group in scored for step in group.get(name, ())][:_STEPS_LOOKED_AT]
            steps = [step for step in called[tool] if step_status(step.get("status")) != "error"][-_STEPS_LOOKED_AT:]
            if steps and len(fits) < _LOOKED_AT:
                each = [self._fit(tool, reference, step) for reference, step in product(references, steps)]
                fits.append(max(each) if max(each) > 0 else min(each))

    def _learn(self, names: Iterable[str], tools: Iterable[str]) -> None:
        new_names, new_tools = set(names) - self._names.keys(), set(tools) - self._tools.keys()
        if not new_names and not new_tools:
            return
        self._names |= dict.fromkeys(sorted(new_names), False)
        self._tools |= dict.fromkeys(sorted(new_tools), False)
        for tool in self._tools:
            for name in self._names if tool in new_tools else new_names:
                if self._views.may_fulfil(tool, name):
                    self._names[name] = self._tools[tool] = True

    def _fit(self, tool: str, reference_step: Step, step: Step) -> int:
        """Return 2 if a call fulfils a reference step, 1 if its form or arguments fit, -1 for another form, else 0."""
        reference, outputs = self._views.reference_view(reference_step), self._config.steps.outputs
        declared = outputs.get(tool, outputs.get(reference["name"]))
        actual = StepView(step, id_column=reference.id_column, declared=declared)
        kind = self._views.kind_of(reference)
        with suppress(MatcherError):  # a user's matcher was not made for these steps
            if comparison_of(kind.matcher, reference, actual).score > 0:
                return 2
        if kind.reads == "args":
            wanted, args = reference.get("args"), actual.get("args")
            are_mappings = isinstance(wanted, Mapping) and isinstance(args, Mapping)
            return int(are_mappings and bool(wanted) and wanted.keys() <= args.keys())
        form = "documents" if self._views.includes(reference) else _form(reference)
        shown_as = self._views.shown_as_of(reference["name"], self._views.own_kind_of(reference))
        found = _form(actual)
        if form is None or found is None or (form == "rows" and shown_as != "rows"):
            return 0
        return 1 if form == found else -1

    def knows(self, tool: str) -> bool:
        """Return whether steps of a tool may fulfil a reference step that was added so far."""
        return self._tools.get(tool, False)

    def found(self) -> list[UnknownTool]:
        """Return each tool with a suggestion, the most called first, then all others as one entry.

        If no response has a call, the only entry says so and names no tool.
        """
        if not self._calling and (asking := max(self._asking.values(), default=0)) >= _FEWEST_UNEXPLAINED:
            what = f"none of {self._responses:,} responses has a tool call, as {asking:,} should"
            return [UnknownTool((), None, what, RECORDED_CALLS)]
        renamed = self._config.steps.names
        missed = [
            (tool, name)
            for tool, name in self._fits
            if not self._names[name]
            and not self._tools[tool]
            and not have_other_meanings(renamed.get(tool, tool), name)
        ]
        suggested = self._suggestions(missed)
        found = []
        for tool, target in sorted(suggested.items(), key=lambda each: -self._calling[each[0]]):
            shown = f"{_short(tool)} ({_short(renamed[tool])} in steps.names)" if tool in renamed else _short(tool)
            times = f"{self._calling[tool]:,} of {counted(self._responses, 'response')}"
            setting = {"steps": {"names": {tool: target}}}
            text = yaml.safe_dump(setting, default_flow_style=True, width=10_000, allow_unicode=True).strip()[1:-1]
            what = f"{shown} is called in {times} and no reference step has that name"
            found.append(UnknownTool((tool,), target, what, f"perhaps `{text}` in the config"))
        # A suggestion explains the missed steps that it fulfils. The other missed steps may belong to any other tool.
        left = [
            (tool, name)
            for tool, name in missed
            if tool not in suggested
            and self._views.names_that_fulfil(name).isdisjoint(suggested.values())
            and self._asking[name] >= _FEWEST_UNEXPLAINED
        ]
        return [*found, self._unexplained(left)] if left else found

    def _suggestions(self, pairs: Iterable[tuple[str, str]]) -> dict[str, str]:
        """Return suggested names by tool. The best pairs are taken first; each name and each tool is used once."""
        ranked = []
        for tool, name in pairs:
            # The tool needs the name of the reference step, or of another step that may fulfil it.
            fits, names = self._fits[tool, name], names_that_fulfil(name)
            target = name if name in names else max(sorted(names), key=partial(name_similarity, tool))
            alike = max(name_similarity(tool, other) for other in (name, target))
            fitting, unfit = sum(fit > 0 for fit in fits), sum(fit < 0 for fit in fits)
            if 0 < len(fits) <= 2 * fitting or (alike >= _ALIKE and 2 * unfit <= len(fits)):
                strength = sum(fit for fit in fits if fit > 0) / max(1, len(fits))
                ranked.append((-strength, -alike, -self._calling[tool], tool, name, target))
        suggested: dict[str, str] = {}
        taken: set[str] = set()
        for *_, tool, name, target in sorted(ranked):
            if tool not in suggested and name not in taken:
                suggested[tool] = target
                taken.add(name)
        return suggested

    def _unexplained(self, pairs: Iterable[tuple[str, str]]) -> UnknownTool:
        tools = sorted({tool for tool, _ in pairs}, key=lambda tool: (-self._calling[tool], tool))
        missed = {name for _, name in pairs}
        needed = self._views.tools_called({other for name in missed for other in names_that_fulfil(name)})
        called = listed([f"{_short(tool)} (in {self._calling[tool]:,})" for tool in tools])
        what = (
            f"none of {counted(self._responses, 'response')} calls {' or '.join(map(_short, needed))}, as "
            f"{max(self._asking[name] for name in missed):,} should; called, but in no reference step: {called}"
        )
        hint = "if they are the same, say so with `steps: {names: …}` in the config"
        return UnknownTool(tuple(tools), None, what, hint)


def _form(step: StepView) -> str | None:
    """Return the form of a step's output: documents, rows, or None for any other form."""
    with suppress(UnreadableOutput):
        if step.parsed(parse_document_ids) != []:
            return "documents"
    with suppress(UnreadableOutput):
        if not step_results(step).form.startswith(SINGLE_FORMS):  # many tools return a number or an object
            return "rows"
    return "rows" if step.get("output_media_type") == SPARQL_RESULTS else None


def _items(value: Any) -> Sequence[Any]:
    return value if isinstance(value, list | tuple) else ()


def _mappings(value: Any) -> list[Step]:
    return [each for each in _items(value) if isinstance(each, dict | Mapping)]  # checking for dict first is faster


def _by_name(steps: Any) -> dict[str, list[Step]]:
    by_name: dict[str, list[Step]] = {}
    for step in _mappings(steps):
        if isinstance(name := step.get("name"), str):
            by_name.setdefault(name, []).append(step)
    return by_name


def reference_names(templates: Any) -> list[str]:
    """Return the names of the reference steps of a dataset, sorted; parts that break the format are ignored."""
    questions = [question for template in _mappings(templates) for question in _mappings(template.get("questions"))]
    groups = [group for question in questions for group in _items(question.get("reference_steps"))]
    return sorted({name for group in groups for name in _by_name(group)})


@lru_cache(maxsize=4096)
def name_similarity(one: str, other: str) -> float:
    """Return the similarity of two tool names, 0 to 1, by the words that they share."""
    words, others = _words(one), _words(other)
    pairs = ([sorted((word, other), key=len) for other in others] for word in words)
    # A word of three or more letters also equals a word that begins with it.
    shared = sum(any(one == two or (len(one) > 2 and two.startswith(one)) for one, two in each) for each in pairs)
    return min(1.0, shared / max(1, min(len(words), len(others))))


def _words(name: str) -> list[str]:
    words = [word.lower() for word in _WORD.findall(name)]
    return [word for word in words if word not in _GENERIC] or words
