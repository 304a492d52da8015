"""Drafting a reference dataset from what an agent did: questions, reference answers and reference steps."""

from collections.abc import Mapping
from dataclasses import dataclass
from os import PathLike
from typing import Any, cast

from graphrag_eval_lc.config import ConfigSource, EvaluationConfig
from graphrag_eval_lc.dataset.draft_sources import DraftSource, draft_source
from graphrag_eval_lc.dataset.loading import DatasetSource, Responses
from graphrag_eval_lc.errors import DatasetError, MatcherError
from graphrag_eval_lc.matching.matchers import UnreadableOutput
from graphrag_eval_lc.matching.rows import SPARQL_RESULTS, read_sparql_results
from graphrag_eval_lc.matching.rows.row_steps import ROWS
from graphrag_eval_lc.matching.step_views import StepViews
from graphrag_eval_lc.records import Template, is_error, step_status
from graphrag_eval_lc.registry.step_kinds import (
    RETRIEVAL,
    StepKind,
    drafting_kinds,
    drafting_kinds_by_form,
    step_kind_for,
)
from graphrag_eval_lc.texts import counted, listed

DRAFT_TEMPLATE_ID = "draft"

_REFERENCES = ("reference_answer", "reference_steps")


@dataclass(frozen=True, slots=True)
class Draft:
    """A draft of a reference dataset.

    Attributes:
        templates: The dataset.
        notes: Sentences for the user, such as which questions are left out.
    """

    templates: list[Template]
    notes: tuple[str, ...]

    @property
    def number_of_questions(self) -> int:
        """The number of questions."""
        return sum(len(template.get("questions") or ()) for template in self.templates)


def draft_dataset(
    responses: Responses | str | PathLike[str],
    dataset: DatasetSource | None = None,
    config: ConfigSource = None,
    *,
    keep_references: bool = False,
) -> list[Template]:
    """Draft a reference dataset from what an agent did.

    For each tool the last successful step with a comparable output becomes a reference step, in a group of its own, in
    the order of the run. A search whose hit a later step uses becomes ``iri_discovery``; SPARQL JSON is recognized by
    its form, whatever the tool's name, and steps that are known to give rows (``sparql_query``, ``cypher_query``, those
    of ``steps.kinds``) keep rows in any form that is scored; a registered step kind drafts its own steps. The answers
    become the reference answers. Everything is marked with ``draft: true``: an agent's run is no truth, so check each
    question, and remove the marks.

    Args:
        responses: The folder of a run, a file of responses, the responses by question id, or a list of responses with
            question ids. Of several repeats of a question the first that did not fail is taken.
        dataset: A path, or the templates: they and their questions keep their order, and all keys but the references.
            None for the dataset of the run's folder; without one all questions go into one template.
        config: A path, a dict or an EvaluationConfig, which names the steps (``steps: {names: …}``) and those that
            count as retrieval. None for that of the run's folder.
        keep_references: Whether to keep the dataset's reference answers and steps, and draft only what is missing.

    Returns:
        The templates, with a question for each response that did not fail.

    Raises:
        ResponsesError: The responses cannot be read, are neither a mapping nor a list of responses with question ids,
            or break the format.
        RunFolderError: The folder holds no responses, or its run.json cannot be read.
        DatasetError: The dataset cannot be read or breaks the format; or none is there whose references could be kept.
        ConfigError: The config has a key or value that does not exist.
        MatcherError: The draft function of a registered step kind fails, or returns no reference step.

    Example:
        >>> step = {"name": "add", "args": {}, "id": "c1", "status": "success", "output": "3"}
        >>> draft_dataset([{"question_id": "q", "question_text": "1 + 2?", "actual_steps": [step]}])[0]["questions"]
        [{'id': 'q', 'question_text': '1 + 2?', 'draft': True, 'reference_steps': [[{'name': 'add', 'args': {}, \
'output': '3', 'output_media_type': 'application/json'}]]}]
    """
    return draft(responses, dataset, config, keep_references=keep_references).templates


def draft(
    responses: Responses | str | PathLike[str],
    dataset: DatasetSource | None = None,
    config: ConfigSource = None,
    *,
    keep_references: bool = False,
) -> Draft:
    """Draft a reference dataset with notes; see ``draft_dataset``."""
    source = draft_source(responses, dataset, config)
    if keep_references and source.templates is None:
        raise DatasetError(
            "there is no dataset whose references could be kept",
            hint="Give --dataset FILE (dataset=…), or leave --keep-references (keep_references) out.",
        )
    drafting = _Drafting(source, keep_references)
    known = source.templates or ()
    templates = [template for each in known if (template := drafting.template(each)) is not None]
    rest = drafting.rest()
    if rest or source.templates is None:
        own = next((each for each in templates if each["template_id"] == DRAFT_TEMPLATE_ID), None)
        if own is None:
            templates.append(own := {"template_id": DRAFT_TEMPLATE_ID, "draft": True, "questions": []})
        own |= {"draft": True, "questions": [*own["questions"], *rest]}
    return Draft(cast("list[Template]", templates), (*source.notes, *drafting.notes()))


class _Drafting:
    """Drafts questions, and notes those that are left out."""

    def __init__(self, source: DraftSource, keep_references: bool) -> None:
        self._source = source
        self._keep_references = keep_references
        self._left = dict(source.responses)
        self._noted: dict[str, list[str]] = {}

    def template(self, template: Mapping[str, Any]) -> dict[str, Any] | None:
        """Return a template with its drafted questions; None if there is none."""
        questions = [
            drafted
            for question in template.get("questions") or ()
            if (drafted := self._question(question, self._left.pop(str(question["id"]), None))) is not None
        ]
        if not questions:
            return None
        mark = {"draft": True} if any(question.get("draft") for question in questions) else {}
        return {**{key: value for key, value in template.items() if key != "questions"}, **mark, "questions": questions}

    def rest(self) -> list[dict[str, Any]]:
        """Return drafts of the questions that no template has."""
        left, self._left = self._left, {}
        questions = []
        for identifier, response in left.items():
            if self._source.templates is not None:
                self._note(f"Not in the dataset, and now in the template {DRAFT_TEMPLATE_ID}", identifier)
            text = _asked_text(response) or f"(write the question of {response.get('question_id')})"
            questions.append(self._question({"id": identifier, "question_text": text}, response))
        return [question for question in questions if question is not None]

    def notes(self) -> list[str]:
        """Say what is left out, and what differs."""
        return [f"{what} ({counted(len(ids), 'question')}): {listed(ids)}." for what, ids in self._noted.items()]

    def _note(self, what: str, identifier: str) -> None:
        self._noted.setdefault(what, []).append(identifier)

    def _question(self, question: Mapping[str, Any], response: Mapping[str, Any] | None) -> dict[str, Any] | None:
        identifier = str(question["id"])
        if response is None or is_error(response):
            kept = "left as they are" if self._keep_references else "left out"
            self._note(f"{'Without a response' if response is None else 'Failed'}, and {kept}", identifier)
            return dict(question) if self._keep_references else None
        is_kept = self._keep_references
        base = {key: value for key, value in question.items() if key not in _REFERENCES or (is_kept and value)}
        asked = _asked_text(response)
        if asked is not None and " ".join(asked.split()) != " ".join(str(question["question_text"]).split()):
            self._note("Asked with another text than the dataset has now, which the draft has", identifier)
            base["question_text"] = asked
        drafted = drafted_references(response, self._source.config)
        new = {key: drafted[key] for key in _REFERENCES if key in drafted and key not in base}
        mark = {"draft": True} if new or not is_kept else {}
        first = {key: base.pop(key) for key in ("id", "question_text")}
        return {**first, **mark, **base, **new}


def _asked_text(response: Mapping[str, Any]) -> str | None:
    text = response.get("question_text")
    return text if isinstance(text, str) and text else None


def drafted_references(response: Mapping[str, Any], config: EvaluationConfig) -> dict[str, Any]:
    """Return the reference answer and the groups of reference steps that are drafted from a response.

    Args:
        response: A response that did not fail.
        config: The configuration, which names the steps of the tools and those of retrieval.

    Returns:
        ``reference_answer`` and ``reference_steps``, each only where there is one.
    """
    references: dict[str, Any] = {}
    if response.get("actual_answer"):
        references["reference_answer"] = response["actual_answer"]
    names = config.steps.names
    steps = [
        {**step, "name": names.get(str(step.get("name")), str(step.get("name")))}
        for step in response.get("actual_steps") or ()
        if isinstance(step, Mapping)
    ]
    groups = _groups(steps, config)
    if groups:
        references["reference_steps"] = groups
    return references


def _groups(steps: list[dict[str, Any]], config: EvaluationConfig) -> list[list[dict[str, Any]]]:
    views = StepViews(config.steps, config.sparql, config.retrieval)
    document_names = config.retrieval.document_step_names(config.steps.names)
    successful = [step for step in steps if step_status(step.get("status", "success")) == "success"]
    drafted: dict[tuple[str, str], dict[str, Any]] = {}
    for place, step in enumerate(successful):
        name = step["name"]
        kind = _kind_of(step, document_names, views)
        reference = None if kind is None else _reference_step(kind, step, successful[place + 1 :])
        if kind is None or reference is None:
            continue
        if kind is ROWS and views.own_kind_of(views.reference_view(reference)) is not ROWS:
            reference["output_media_type"] = SPARQL_RESULTS  # no media type is that of its form
        key = (name, str(reference.get("output")) if kind.drafts_each else "")
        if not kind.drafts_each:
            drafted.pop(key, None)
        drafted[key] = reference
    return [[reference] for reference in drafted.values()]


def _kind_of(step: Mapping[str, Any], document_names: frozenset[str], views: StepViews) -> StepKind | None:
    """Return the kind of an actual step by the config, its name or the form of its output; None where it has none."""
    name = step["name"]
    declared = views.declared_kind_of(name)
    if name in document_names:
        kinds = [step_kind_for(RETRIEVAL, None)]
    else:
        kinds = drafting_kinds(name) if declared is None else [declared]
    if not kinds:
        kinds = [kind for kind in drafting_kinds_by_form() if kind.parse] + [step_kind_for(None, None)]
    found = next((kind for kind in kinds if _is_readable(step, kind)), None)
    if found is None and ROWS in kinds and _has_rows_in_any_form(step):
        return ROWS
    return found


def _has_rows_in_any_form(step: Mapping[str, Any]) -> bool:
    """Return whether scoring reads the output of a query, which is then drafted as it is."""
    try:
        return isinstance(step.get("output"), str) and bool(read_sparql_results(step["output"]).row_count)
    except UnreadableOutput:
        return False


def _is_readable(step: Mapping[str, Any], kind: StepKind) -> bool:
    if kind.reads == "args" or (kind.draft is not None and kind.parse is None):
        return True
    output = step.get("output")
    if not isinstance(output, str) or not output:
        return False
    try:
        if kind.parse is not None:
            kind.parse(output)
    except UnreadableOutput:
        return False
    return True


def _reference_step(kind: StepKind, step: Mapping[str, Any], later: list[dict[str, Any]]) -> dict[str, Any] | None:
    """Return the reference step that a kind drafts from an actual one, if any."""
    step = {**step, "args": step.get("args") or {}}
    if kind.draft is None:
        keys = ("name", "args") if kind.reads == "args" else ("name", "args", "output")
        media_type = kind.media_type_for(step["name"])
        return {key: step[key] for key in keys} | ({} if media_type is None else {"output_media_type": media_type})
    try:
        reference = kind.draft(step, later)
    except UnreadableOutput:
        return None
    except Exception as problem:
        what = f"the draft of {kind.key} failed with {type(problem).__name__}: {str(problem) or 'no message':.200}"
        raise MatcherError(what, hint="Fix the function that drafts its reference steps.") from problem
    if reference is not None and not (isinstance(reference, Mapping) and isinstance(reference.get("name"), str)):
        hint = "A draft is a reference step with a name, or None."
        raise MatcherError(f"the draft of {kind.key} gave {reference!r:.80}", hint=hint)
    return None if reference is None else dict(reference)
