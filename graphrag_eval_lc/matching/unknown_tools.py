"""Tools that lose scores because no reference step has their name, and the names that they should probably have."""

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from functools import lru_cache
from typing import Any, NamedTuple

import yaml

from graphrag_eval_lc.config import EvaluationConfig
from graphrag_eval_lc.errors import MatcherError
from graphrag_eval_lc.matching.candidates import Candidates
from graphrag_eval_lc.matching.matchers import StepView, UnreadableOutput
from graphrag_eval_lc.matching.retrieval import parse_document_ids
from graphrag_eval_lc.matching.rows import SPARQL_RESULTS
from graphrag_eval_lc.matching.rows.results import SPARQL_JSON
from graphrag_eval_lc.matching.rows.row_steps import step_results
from graphrag_eval_lc.matching.step_views import StepViews
from graphrag_eval_lc.matching.steps import scored_groups
from graphrag_eval_lc.records import is_error, step_status
from graphrag_eval_lc.registry.step_kinds import have_other_meanings, names_that_fulfil
from graphrag_eval_lc.texts import counted, on_one_line, shortened

# For a tool and a reference name so many responses are looked at, and so many steps of each.
_LOOKED_AT = 5
_STEPS_LOOKED_AT = 3
_LONGEST_COMPARED = 100_000  # characters of an output
_ENOUGH = 0.5  # of the responses that are looked at
_ALIKE = 0.6
# A good agent may miss a step of one question or two, and call tools that no reference needs.
_FEWEST_UNEXPLAINED = 3
_MOST_NAMED = 5
_LONGEST_NAME = 80

_RESULTS, _ROWS = "SPARQL results", "rows"

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

    Agents have tools that no reference needs. So a tool is only told of if a reference step of a scored group needs a
    name that no response calls at all, and a response calls the tool where such a step is missed. A name is suggested
    if the tool's outputs would fulfil the reference steps, or have their form (SPARQL results, documents; or
    arguments), or if the names resemble each other. Without a suggestion the step must be missed in three responses.

    Args:
        config: How steps are scored, and the names of the tools.
        reference_names: Names of reference steps beside those of the questions that are added.

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
        self._pairs: dict[tuple[str, str], _Evidence] = {}  # by tool and reference name
        self._learn_names(reference_names)

    def add(self, reference_steps: Any, response: Mapping[str, Any]) -> None:
        """Take up a response, or its result.

        Args:
            reference_steps: The groups of reference steps of its question; what breaks the format is passed over.
            response: The response; one that failed before its first step is passed over.
        """
        actual = _named_in(response.get("actual_steps"))
        if not actual and is_error(response):
            return
        groups = [_named_in(group) for group in _listed_in(reference_steps)]
        self._learn_names(_name(step) for group in groups for step in group)
        self._responses += 1
        by_tool: dict[str, list[Mapping[str, Any]]] = {}
        for step in actual:
            by_tool.setdefault(_name(step), []).append(step)
        self._learn_tools(by_tool)
        self._calling.update(by_tool.keys())
        scored: dict[str, list[Mapping[str, Any]]] = {}
        for index in scored_groups(groups, self._config.steps.counted):
            for step in groups[index]:
                scored.setdefault(_name(step), []).append(step)
        self._asking.update(scored.keys())
        for name, references in scored.items():
            for tool, steps in () if self._names[name] else by_tool.items():
                if not self._tools[tool]:
                    self._pairs.setdefault((tool, name), _Evidence()).add(self._looked_at(references, tool, steps))

    def knows(self, tool: str) -> bool:
        """Return whether steps of a tool may fulfil some reference step, as far as reference steps are known yet."""
        return self._tools.get(tool, False)

    def found(self) -> list[UnknownTool]:
        """Return each tool that has a suggestion, the most called first, then all others together."""
        pairs = self._open_pairs()
        suggested = self._suggestions(pairs)
        named = frozenset(suggested.values())
        found = [
            UnknownTool((tool,), name, self._called(tool), _hint(tool, name))
            for tool, name in sorted(suggested.items(), key=lambda each: -self._calling[each[0]])
        ]
        # A suggestion explains the missed steps that it fulfils; for the others any tool that is left may be meant.
        left = [
            (tool, name)
            for tool, name in pairs
            if tool not in suggested
            and named.isdisjoint(self._views.names_that_fulfil(name))
            and self._asking[name] >= _FEWEST_UNEXPLAINED
        ]
        return [*found, self._unexplained(left)] if left else found

    def _unexplained(self, pairs: Sequence[tuple[str, str]]) -> UnknownTool:
        tools = sorted({tool for tool, _ in pairs}, key=lambda tool: (-self._calling[tool], tool))
        missed = sorted({name for _, name in pairs})
        needed = self._views.tools_called({other for name in missed for other in names_that_fulfil(name)})
        count = max(self._asking[name] for name in missed)
        hint = "where they are the same, say so with `steps: {names: …}` in the config"
        if len(tools) == 1:
            what = f"{self._called(tools[0])}, while none calls {_names_in_words(needed)}, as {count:,} should"
        else:
            called = _names_in_words([f"{_short_name(tool)} (in {self._calling[tool]:,})" for tool in tools], "and")
            what = (
                f"none of {self._counted()} calls {_names_in_words(needed)}, as {count:,} should, while no "
                f"reference step has the names of {called}, which are called"
            )
        return UnknownTool(tuple(tools), None, what, hint)

    def _called(self, tool: str) -> str:
        name = self._config.steps.names.get(tool, tool)
        renamed = "" if name == tool else f" ({_short_name(name)} in steps.names)"
        times = f"{self._calling[tool]:,} of {self._counted()}"
        return f"{_short_name(tool)}{renamed} is called in {times} and no reference step has that name"

    def _counted(self) -> str:
        return counted(self._responses, "response")

    def _open_pairs(self) -> dict[tuple[str, str], "_Evidence"]:
        """Return the pairs of a tool that is still unknown and a reference name that is still not called."""
        return {
            (tool, name): evidence
            for (tool, name), evidence in self._pairs.items()
            if not self._names[name]
            and not self._tools[tool]
            and not have_other_meanings(self._config.steps.names.get(tool, tool), name)
        }

    def _suggestions(self, pairs: Mapping[tuple[str, str], "_Evidence"]) -> dict[str, str]:
        """Return names by tool, the best pair first; each tool gets one name, and each reference name one tool."""
        ranked = []
        for (tool, name), evidence in pairs.items():
            target = self._target(tool, name)
            alike = max(name_similarity(tool, other) for other in {name, target})
            if evidence.speaks_for_it or (alike >= _ALIKE and not evidence.speaks_against_it):
                ranked.append((evidence.strength, alike, evidence.responses, tool, name, target))
        ranked.sort(key=lambda each: (*(-part for part in each[:3]), *each[3:5]))
        suggested: dict[str, str] = {}
        taken: set[str] = set()
        for _, _, _, tool, name, target in ranked:
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

    def _looked_at(
        self, references: Sequence[Mapping[str, Any]], tool: str, steps: Sequence[Mapping[str, Any]]
    ) -> "_Look | None":
        """Compare a tool's last calls with reference steps as if it had their name; None once enough was seen."""
        name = _name(references[0])
        known = self._pairs.get((tool, name))
        if known is not None and known.looks >= _LOOKED_AT:
            return None
        successful = [step for step in steps if step_status(step.get("status")) != "error"][-_STEPS_LOOKED_AT:]
        if not successful:
            return None
        names = {**self._config.steps.names, tool: self._target(tool, name)}
        renamed = self._config.steps.model_copy(update={"names": names})
        views = StepViews(renamed, self._config.sparql, self._config.retrieval)
        actual = [views.actual_view({**step, "status": "success"}) for step in successful]
        looks = (_look(views.reference_view(reference), actual, views) for reference in references[:_STEPS_LOOKED_AT])
        return _Look(*map(any, zip(*looks, strict=True)))

    def _learn_names(self, names: Iterable[str]) -> None:
        for name in names:
            if name not in self._names:
                fulfilling = [tool for tool in self._tools if self._views.may_fulfil(tool, name)]
                self._names[name] = bool(fulfilling)
                self._tools.update(dict.fromkeys(fulfilling, True))

    def _learn_tools(self, tools: Iterable[str]) -> None:
        for tool in tools:
            if tool not in self._tools:
                fulfilled = [name for name in self._names if self._views.may_fulfil(tool, name)]
                self._tools[tool] = bool(fulfilled)
                self._names.update(dict.fromkeys(fulfilled, True))


class _Look(NamedTuple):
    """Whether calls of a tool in one response fulfil a reference step, have its form, or have another form."""

    fulfils: bool
    has_form: bool
    has_other_form: bool


class _Evidence:
    """What speaks for a tool being the one that a reference name means."""

    def __init__(self) -> None:
        self.responses = 0
        self.looks = 0
        self._fulfil = self._have_form = self._have_other_form = 0

    def add(self, look: _Look | None) -> None:
        self.responses += 1
        if look is not None:
            self.looks += 1
            self._fulfil += look.fulfils
            self._have_form += look.has_form
            self._have_other_form += look.has_other_form

    @property
    def strength(self) -> float:
        """Twice the share that fulfils and once the share that has the form, 0 to 3."""
        return (2 * self._fulfil + self._have_form) / self.looks if self.looks else 0.0

    @property
    def speaks_for_it(self) -> bool:
        return self.looks > 0 and max(self._fulfil, self._have_form) >= _ENOUGH * self.looks

    @property
    def speaks_against_it(self) -> bool:
        return self.looks > 0 and self._have_other_form > _ENOUGH * self.looks


def _look(reference: StepView, actual: Sequence[StepView], views: StepViews) -> _Look:
    try:
        short = [each for each in actual if _is_short(each)] if _is_short(reference) else []
        compared = Candidates(reference, short, {}, {}, views).compared()
        fulfils = any(comparison.score > 0 for comparison in compared.values())
    except MatcherError:  # a matcher of the user's was not made for these steps
        fulfils = False
    if views.kind_of(reference).reads == "args":
        return _Look(fulfils, any(_has_arguments(step, reference) for step in actual), False)
    is_retrieval = views.includes(reference)
    if not is_retrieval and views.shown_as(reference) == "rows" and _row_form(reference) == _ROWS:
        forms = {_row_form(step) or _form(step) for step in actual}
        return _Look(fulfils, bool(forms & {_ROWS, _RESULTS}), bool(forms - {_ROWS, _RESULTS, None}))
    form = _form(reference, is_retrieval=is_retrieval)
    forms = {_form(step) for step in actual}
    return _Look(fulfils, form is not None and form in forms, form is not None and bool(forms - {form, None}))


def _has_arguments(actual: StepView, reference: StepView) -> bool:
    expected, found = reference.get("args"), actual.get("args")
    if not isinstance(expected, Mapping) or not isinstance(found, Mapping):
        return False
    return bool(expected) and set(expected) <= set(found)


def _form(step: StepView, *, is_retrieval: bool = False) -> str | None:
    """Return the form of a step's output; None where it has none of the known ones."""
    if step.get("output_media_type") == SPARQL_RESULTS or _gives_results(step):
        return _RESULTS
    return "documents" if is_retrieval or _is_readable(step, parse_document_ids) else None


def _row_form(step: StepView) -> str | None:
    """Return the form of an output that is rows, W3C's or such as row objects; None where it is none."""
    try:
        step_results(step)
    except UnreadableOutput:
        return None
    return _RESULTS if _form(step) == _RESULTS else _ROWS


def _gives_results(step: StepView) -> bool:
    """Return whether an output is SPARQL results in one of W3C's formats; row objects may be anything."""
    try:
        form = step_results(step).form
    except UnreadableOutput:
        return False
    return SPARQL_JSON in form or "W3C" in form


def _is_readable(step: StepView, parse: Any) -> bool:
    try:
        parsed = step.parsed(parse)
    except UnreadableOutput:
        return False
    return bool(parsed != [])


def _is_short(step: StepView) -> bool:
    output = step.get("output")
    return not isinstance(output, str) or len(output) <= _LONGEST_COMPARED


def _named_in(steps: Any) -> list[Mapping[str, Any]]:
    return [step for step in _mappings_in(steps) if isinstance(step.get("name"), str)]


def _mappings_in(value: Any) -> list[Mapping[str, Any]]:
    return [each for each in _listed_in(value) if isinstance(each, Mapping)]


def _listed_in(value: Any) -> Sequence[Any]:
    return value if isinstance(value, list | tuple) else ()


def _name(step: Mapping[str, Any]) -> str:
    return str(step.get("name"))


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
    return one == other or (len(shorter) >= 3 and longer.startswith(shorter))


def _names_in_words(names: Sequence[str], last: str = "or") -> str:
    shown = [_short_name(name) for name in names[:_MOST_NAMED]]
    if len(names) > _MOST_NAMED:
        shown.append(f"{len(names) - _MOST_NAMED:,} more")
    return f" {last} ".join((", ".join(shown[:-1]), shown[-1])) if len(shown) > 1 else "".join(shown)


def _short_name(name: str) -> str:
    return shortened(name, _LONGEST_NAME)


def _hint(tool: str, name: str) -> str:
    setting = {"steps": {"names": {tool: name}}}
    text = yaml.safe_dump(setting, default_flow_style=True, width=10_000, allow_unicode=True)
    return f"perhaps `{text.strip()[1:-1]}` in the config"


def reference_names(templates: Any) -> list[str]:
    """Return the names of the reference steps of a dataset, sorted; what breaks the format is passed over.

    Example:
        >>> reference_names([{"questions": [{"reference_steps": [[{"name": "add"}, {"name": "add"}]]}]}])
        ['add']
    """
    questions = [
        question for template in _mappings_in(templates) for question in _mappings_in(template.get("questions"))
    ]
    groups = [group for question in questions for group in _listed_in(question.get("reference_steps"))]
    return sorted({_name(step) for group in groups for step in _named_in(group)})
