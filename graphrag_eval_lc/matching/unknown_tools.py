"""Tools that lose scores because no reference step has their name, and the names that they should probably have."""

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from difflib import SequenceMatcher
from functools import lru_cache, partial
from typing import Any

import yaml

from graphrag_eval_lc.config import EvaluationConfig
from graphrag_eval_lc.errors import MatcherError
from graphrag_eval_lc.matching.candidates import Candidates
from graphrag_eval_lc.matching.matchers import StepView, UnreadableOutput
from graphrag_eval_lc.matching.retrieval import parse_document_ids
from graphrag_eval_lc.matching.rows import SPARQL_RESULTS
from graphrag_eval_lc.matching.rows.json_forms import SINGLE_FORMS
from graphrag_eval_lc.matching.rows.row_steps import step_results
from graphrag_eval_lc.matching.step_views import StepViews
from graphrag_eval_lc.matching.steps import scored_groups
from graphrag_eval_lc.records import is_error, step_status
from graphrag_eval_lc.registry.step_kinds import have_other_meanings, names_that_fulfil
from graphrag_eval_lc.texts import counted, listed, on_one_line, shortened

# For a tool and a reference name so many responses are looked at, and so many steps of each.
_LOOKED_AT = 5
_STEPS_LOOKED_AT = 3
_ALIKE = 0.6
# A good agent may miss a step of one question or two, and call tools that no reference needs.
_FEWEST_UNEXPLAINED = 3
_short = partial(shortened, length=80)

_WORD = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|\d+")
# Words of tool names that do not say what the tool returns.
_GENERIC = frozenset({"a", "call", "do", "execute", "fetch", "find", "get", "my", "run", "the", "tool", "use"})


@dataclass(frozen=True, slots=True)
class UnknownTool:
    """A tool, or several, whose name no reference step has while reference steps of another name are missed.

    Attributes:
        tools: The names of the tools; more than one where each is as likely.
        suggestion: The name that the tool should probably have; None where no name fits.
        what: What is wrong, in a sentence without its end.
        hint: How to put it right.
    """

    tools: tuple[str, ...]
    suggestion: str | None
    what: str
    hint: str

    @on_one_line
    def __str__(self) -> str:
        return f"{self.what}; {self.hint}"


class UnknownTools:
    """Finds tools whose names no reference step has, where that explains lost scores.

    Agents have tools that no reference needs. So a tool is only reported if a reference step of a scored group needs a
    name that no response calls at all, and a response calls the tool where such a step is missed. A name is suggested
    if the tool's outputs would fulfil the reference steps, or have their form (SPARQL results, documents; or
    arguments), or if the names resemble each other. Without a suggestion the step must be missed in three responses.

    ``reference_names`` are names of reference steps besides those of the questions that are added.

    Example:
        >>> tools = UnknownTools(EvaluationConfig())
        >>> step = {"name": "add_up", "args": {}, "id": "c1", "status": "success", "output": "3"}
        >>> tools.add([[{"name": "add", "output": "3"}]], {"question_id": "q", "actual_steps": [step]})
        >>> [str(tool) for tool in tools.found()]
        ['add_up is called in 1 of 1 response and no reference step has that name; perhaps \
`steps: {names: {add_up: add}}` in the config']
    """

    def __init__(self, config: EvaluationConfig, reference_names: Iterable[str] = ()) -> None:
        self._config = config
        self._views = StepViews(config.steps, config.sparql, config.retrieval)
        self._responses = 0
        self._asking: Counter[str] = Counter()  # by reference name: responses to questions that score such a step
        self._calling: Counter[str] = Counter()  # by tool: responses that call it
        self._names: dict[str, bool] = {}  # by reference name: whether a response calls what fulfils it
        self._tools: dict[str, bool] = {}  # by tool: whether it fulfils steps of some reference name
        # By tool and reference name: responses, those of them that were looked at, and what was seen in how many.
        self._pairs: dict[tuple[str, str], Counter[str]] = {}
        self._learn(reference_names, ())

    def add(self, reference_steps: Any, response: Mapping[str, Any]) -> None:
        """Take up a response, or its result, with the groups of reference steps of its question.

        What breaks the format is passed over, and a response that failed before its first step.
        """
        actual = _named_in(response.get("actual_steps"))
        if not actual and is_error(response):
            return
        groups = [_named_in(group) for group in _listed_in(reference_steps)]
        called = _by_name(actual)
        scored = _by_name(step for at in scored_groups(groups, self._config.steps.counted) for step in groups[at])
        self._learn((step["name"] for group in groups for step in group), called)
        self._responses += 1
        self._calling.update(called.keys())
        self._asking.update(scored.keys())
        for name, references in scored.items():
            for tool, steps in () if self._names[name] else called.items():
                if not self._tools[tool]:
                    self._look(references, tool, steps, self._pairs.setdefault((tool, name), Counter()))

    def knows(self, tool: str) -> bool:
        """Return whether steps of a tool may fulfil some reference step, as far as reference steps are known yet."""
        return self._tools.get(tool, False)

    def found(self) -> list[UnknownTool]:
        """Return each tool that has a suggestion, the most called first, then all others together."""
        pairs = {
            (tool, name): evidence
            for (tool, name), evidence in self._pairs.items()
            if not self._names[name]
            and not self._tools[tool]
            and not have_other_meanings(self._config.steps.names.get(tool, tool), name)
        }
        suggested = self._suggestions(pairs)
        found = []
        for tool, target in sorted(suggested.items(), key=lambda each: -self._calling[each[0]]):
            name = self._config.steps.names.get(tool, tool)
            renamed = "" if name == tool else f" ({_short(name)} in steps.names)"
            times = f"{self._calling[tool]:,} of {counted(self._responses, 'response')}"
            what = f"{_short(tool)}{renamed} is called in {times} and no reference step has that name"
            found.append(UnknownTool((tool,), target, what, _hint(tool, target)))
        # A suggestion explains the missed steps that it fulfils; for the others any tool that is left may be meant.
        explained = frozenset(suggested.values())
        left = [
            (tool, name)
            for tool, name in pairs
            if tool not in suggested
            and explained.isdisjoint(self._views.names_that_fulfil(name))
            and self._asking[name] >= _FEWEST_UNEXPLAINED
        ]
        if left:
            tools = sorted({tool for tool, _ in left}, key=lambda tool: (-self._calling[tool], tool))
            missed = {name for _, name in left}
            needed = self._views.tools_called({other for name in missed for other in names_that_fulfil(name)})
            called = listed([f"{_short(tool)} (in {self._calling[tool]:,})" for tool in tools])
            most = max(self._asking[name] for name in missed)
            what = (
                f"none of {counted(self._responses, 'response')} calls {' or '.join(map(_short, needed))}, as "
                f"{most:,} should; called, but in no reference step: {called}"
            )
            hint = "if they are the same, say so with `steps: {names: …}` in the config"
            found.append(UnknownTool(tuple(tools), None, what, hint))
        return found

    def _suggestions(self, pairs: Mapping[tuple[str, str], Counter[str]]) -> dict[str, str]:
        """Return names by tool, the best pair first; each tool gets one name, and each reference name one tool."""
        ranked = []
        for (tool, name), evidence in pairs.items():
            target = self._target(tool, name)
            alike = max(name_similarity(tool, other) for other in {name, target})
            looks, fulfils, has_form = evidence["looks"], evidence["fulfils"], evidence["has the form"]
            speaks_for_it = 0 < looks <= 2 * max(fulfils, has_form)
            speaks_against_it = looks < 2 * evidence["has another form"]
            if speaks_for_it or (alike >= _ALIKE and not speaks_against_it):
                strength = (2 * fulfils + has_form) / max(1, looks)
                ranked.append((-strength, -alike, -evidence["responses"], tool, name, target))
        suggested: dict[str, str] = {}
        taken: set[str] = set()
        for *_, tool, name, target in sorted(ranked):
            if tool not in suggested and name not in taken:
                suggested[tool] = target
                taken.add(name)
        return suggested

    def _target(self, tool: str, name: str) -> str:
        """Return the name that a tool needs to fulfil reference steps of a name: that one, or another that may."""
        fulfilling = names_that_fulfil(name)
        if name in fulfilling:
            return name
        free = fulfilling - self._names.keys() or fulfilling
        return max(sorted(free), key=lambda other: name_similarity(tool, other))

    def _look(
        self,
        references: Sequence[Mapping[str, Any]],
        tool: str,
        steps: Sequence[Mapping[str, Any]],
        evidence: Counter[str],
    ) -> None:
        """Compare a tool's last calls with reference steps as if it had their name, unless enough was seen."""
        evidence["responses"] += 1
        successful = [step for step in steps if step_status(step.get("status")) != "error"][-_STEPS_LOOKED_AT:]
        if not successful or evidence["looks"] >= _LOOKED_AT:
            return
        names = {**self._config.steps.names, tool: self._target(tool, references[0]["name"])}
        renamed = self._config.steps.model_copy(update={"names": names})
        views = StepViews(renamed, self._config.sparql, self._config.retrieval)
        actual = [views.actual_view({**step, "status": "success"}) for step in successful]
        seen = {"looks"}
        for reference in references[:_STEPS_LOOKED_AT]:
            seen |= _seen(views.reference_view(reference), actual, views)
        evidence.update(seen)

    def _learn(self, names: Iterable[str], tools: Iterable[str]) -> None:
        new_names, new_tools = set(names) - self._names.keys(), set(tools) - self._tools.keys()
        self._names |= dict.fromkeys(sorted(new_names), False)
        self._tools |= dict.fromkeys(sorted(new_tools), False)
        for tool in self._tools:
            for name in self._names if tool in new_tools else new_names:
                if self._views.may_fulfil(tool, name):
                    self._names[name] = self._tools[tool] = True


def _seen(reference: StepView, actual: Sequence[StepView], views: StepViews) -> set[str]:
    """Return whether one of these calls fulfils a reference step, has its form, or has another form."""
    seen: set[str] = set()
    try:
        if any(comparison.score > 0 for comparison in Candidates(reference, actual, views).compared().values()):
            seen.add("fulfils")
    except MatcherError:  # a matcher of the user's was not made for these steps
        pass
    wanted = reference.get("args")
    if views.kind_of(reference).reads == "args":
        given = [set(args) for step in actual if isinstance(args := step.get("args"), Mapping)]
        if isinstance(wanted, Mapping) and wanted and any(set(wanted) <= each for each in given):
            seen.add("has the form")
        return seen
    form = "documents" if views.includes(reference) else _form(reference)
    shown_as = views.shown_as_of(reference["name"], views.own_kind_of(reference))
    if form == "documents" or (form is not None and shown_as == "rows"):
        forms = {_form(step) for step in actual}
        if form in forms:
            seen.add("has the form")
        if forms - {form, None}:
            seen.add("has another form")
    return seen


def _form(step: StepView) -> str | None:
    """Return the form of a step's output: documents, rows, or None for all else."""
    with suppress(UnreadableOutput):
        if step.parsed(parse_document_ids) != []:
            return "documents"
    with suppress(UnreadableOutput):
        if not step_results(step).form.startswith(SINGLE_FORMS):  # many tools return a number or an object
            return "rows"
    return "rows" if step.get("output_media_type") == SPARQL_RESULTS else None


def _named_in(steps: Any) -> list[Mapping[str, Any]]:
    return [step for step in _mappings_in(steps) if isinstance(step.get("name"), str)]


def _mappings_in(value: Any) -> list[Mapping[str, Any]]:
    return [each for each in _listed_in(value) if isinstance(each, Mapping)]


def _listed_in(value: Any) -> Sequence[Any]:
    return value if isinstance(value, list | tuple) else ()


def _by_name(steps: Iterable[Mapping[str, Any]]) -> dict[str, list[Mapping[str, Any]]]:
    by_name: dict[str, list[Mapping[str, Any]]] = {}
    for step in steps:
        by_name.setdefault(step["name"], []).append(step)
    return by_name


@lru_cache(maxsize=4096)
def name_similarity(one: str, other: str) -> float:
    """Return how alike two names of tools are, 0 to 1: by the words that they share, or by their letters.

    Example:
        >>> name_similarity("run_sparql", "sparql_query"), name_similarity("getTimeSeries", "retrieve_time_series")
        (1.0, 1.0)
        >>> name_similarity("think", "sparql_query")
        0.0
    """
    words, others = _words(one), _words(other)
    shared = sum(any(_is_same_word(word, each) for each in others) for word in words)
    by_words = min(1.0, shared / max(1, min(len(words), len(others))))
    letters = SequenceMatcher(None, "".join(words), "".join(others)).ratio()
    return max(by_words, letters if letters >= 0.75 else 0.0)


def _words(name: str) -> list[str]:
    words = [word.lower() for word in _WORD.findall(name)]
    return [word for word in words if word not in _GENERIC] or words


def _is_same_word(one: str, other: str) -> bool:
    shorter, longer = sorted((one, other), key=len)
    return one == other or (len(shorter) > 2 and longer.startswith(shorter))


def _hint(tool: str, name: str) -> str:
    setting = {"steps": {"names": {tool: name}}}
    text = yaml.safe_dump(setting, default_flow_style=True, width=10_000, allow_unicode=True)
    return f"perhaps `{text.strip()[1:-1]}` in the config"


def reference_names(templates: Any) -> list[str]:
    """Return the names of the reference steps of a dataset, sorted; what breaks the format is passed over."""
    questions = [
        question for template in _mappings_in(templates) for question in _mappings_in(template.get("questions"))
    ]
    groups = [group for question in questions for group in _listed_in(question.get("reference_steps"))]
    return sorted({step["name"] for group in groups for step in _named_in(group)})
