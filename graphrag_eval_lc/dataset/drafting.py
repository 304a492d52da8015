"""Drafts a reference dataset (questions, reference answers and steps) from what an agent did."""

import os
import shlex
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any, cast

from graphrag_eval_lc.config import ConfigSource, EvaluationConfig, load_config
from graphrag_eval_lc.dataset.loading import (
    RESPONSES,
    DatasetSource,
    Responses,
    journal_records,
    mistaken_for_responses,
    read_dataset,
    read_responses,
    response_key,
    response_records,
)
from graphrag_eval_lc.errors import DatasetError, MatcherError, ResponsesError
from graphrag_eval_lc.matching.matchers import UnreadableOutput
from graphrag_eval_lc.matching.rows import SPARQL_RESULTS, read_sparql_results
from graphrag_eval_lc.matching.rows.row_steps import ROWS
from graphrag_eval_lc.matching.step_views import StepViews
from graphrag_eval_lc.records import Template, is_error, step_status
from graphrag_eval_lc.registry.plugins import registered_now
from graphrag_eval_lc.registry.step_kinds import (
    RETRIEVAL,
    StepKind,
    drafting_kinds,
    drafting_kinds_by_form,
    step_kind_for,
)
from graphrag_eval_lc.run_folder import RESULTS_FILE, iter_results, read_run, recorded_dataset
from graphrag_eval_lc.texts import counted, listed, plural

DRAFT_TEMPLATE_ID = "draft"

_REFERENCES = ("reference_answer", "reference_steps")
# The sections of a run's config that name the steps.
_OF_NAMES = ("steps", "retrieval")
_STEP_KIND = "step kind "  # the prefix of step kinds in the list of everything that plugins register
_Templates = Sequence[Mapping[str, Any]]


@dataclass(frozen=True, slots=True)
class Draft:
    """A draft of a reference dataset."""

    templates: list[Template]
    notes: tuple[str, ...]  # sentences for the user, such as which questions are left out

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

    For each tool the last successful step with a comparable output becomes a reference step in its own group, in the
    order of the run. If the model requested several calls of the tool at once, they form the group. A search whose hit
    a later step uses becomes ``iri_discovery``. SPARQL JSON is recognized by its form, whatever the tool's name. Steps
    that are known to return rows (``sparql_query``, ``cypher_query``, those of ``steps.kinds``) keep rows in any form
    that is scored. A registered step kind drafts its own steps. The answers become the reference answers. Everything is
    marked with ``draft: true``. Do not trust the draft: it records what the agent did, right or wrong. Check each
    question, and remove the marks.

    Args:
        responses: The folder of a run, a file of responses, the responses by question id, or a list of responses with
            question ids. If there are several repeats of a question, the first one that did not fail is used.
        dataset: A path, or the templates: they and their questions keep their order, and all keys but the references.
            None for the dataset of the run's folder; without one all questions go into one template.
        config: A path, a dict or an EvaluationConfig, which names the steps (``steps: {names: …}``) and those that
            count as retrieval. None for that of the run's folder.
        keep_references: Whether to keep the dataset's reference answers and steps, and draft only what is missing.

    Returns:
        The templates, with a question for each response that did not fail.

    Raises:
        ResponsesError: The responses cannot be read, are not a mapping or a list of responses with question ids,
            or break the format.
        RunFolderError: The folder holds no responses, or its run.json cannot be read.
        DatasetError: The dataset cannot be read or breaks the format; or there is none whose references could be kept.
        ConfigError: The config has a key or value that does not exist.
        MatcherError: The draft function of a registered step kind fails, or returns something else.

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
    folder = Path(responses) if isinstance(responses, str | PathLike) and Path(responses).is_dir() else None
    run: Mapping[str, Any] = {} if folder is None else read_run(folder) or {}
    records, notes = _records(responses, folder)
    chosen = _one_for_each(records)
    notes += _unfinished(run, chosen)
    templates: _Templates | None = None
    if dataset is not None:
        read = read_dataset(dataset)
        templates, notes = read.templates, [*notes, *read.notes]
    elif folder is not None:
        templates, of_dataset = _dataset_of(folder, run)
        notes += of_dataset
    notes += _missing_step_kinds(run)
    if keep_references and templates is None:
        raise DatasetError(
            "the dataset whose references should be kept is missing",
            hint="Give --dataset FILE (dataset=…), or leave --keep-references (keep_references) out.",
        )
    if config is None and folder is not None:
        known = run.get("config") or {}
        config = {key: known[key] for key in _OF_NAMES if known.get(key) is not None}
    settings = load_config(config, has_llm=True, has_embeddings=True)  # nothing is judged here
    drafting = _Drafting(chosen, settings, keep_references)
    drafted = [template for each in templates or () if (template := drafting.template(each)) is not None]
    rest = drafting.rest(has_dataset=templates is not None)
    if rest or templates is None:
        own = next((each for each in drafted if each["template_id"] == DRAFT_TEMPLATE_ID), None)
        if own is None:
            drafted.append(own := {"template_id": DRAFT_TEMPLATE_ID, "draft": True, "questions": []})
        own |= {"draft": True, "questions": [*own["questions"], *rest]}
    return Draft(cast("list[Template]", drafted), (*notes, *drafting.notes()))


# --- what is drafted from --------------------------------------------------------------------------------------------


def _records(
    responses: Responses | str | PathLike[str], folder: Path | None
) -> tuple[Iterable[Mapping[str, Any]], list[str]]:
    """Return the responses, and sentences for the user."""
    if folder is None and isinstance(responses, str | PathLike):
        loaded = read_responses(responses)
        return loaded.records, list(loaded.notes)
    given = response_records(responses) if folder is None else journal_records(folder)
    given.check(RESPONSES, ResponsesError, None if folder is not None else mistaken_for_responses(given.values))
    return given.values, []


def _one_for_each(records: Iterable[Mapping[str, Any]]) -> dict[str, Mapping[str, Any]]:
    """Return one record for each question: its first repeat that did not fail, otherwise its last one.

    If a repeat was recorded several times, its last record counts.
    """
    by_key = {response_key(record): record for record in records}
    chosen: dict[str, Mapping[str, Any]] = {}
    for (identifier, _), record in sorted(by_key.items(), key=lambda each: each[0][1]):
        if identifier not in chosen or is_error(chosen[identifier]):
            chosen[identifier] = record
    return chosen


def _missing_step_kinds(run: Mapping[str, Any]) -> Iterator[str]:
    """Yield a sentence about plugins that the run had and that are missing now, if their step kinds draft steps."""
    registered, plugins = registered_now(), run.get("plugins")
    for plugin in plugins if isinstance(plugins, list) else ():
        if isinstance(plugin, Mapping) and isinstance(plugin.get("gives"), list):
            gone = [str(each) for each in plugin["gives"] if str(each) not in registered]
            kinds = [each.removeprefix(_STEP_KIND) for each in gone if each.startswith(_STEP_KIND)]
            if kinds:
                name = str(plugin.get("name"))
                what = f"{plural(len(kinds), 'step kind')} {listed(kinds)} of the plugin {name}"
                yield f"The run had the {what}, which is missing now: add --plugin {shlex.quote(name)}."


def _dataset_of(folder: Path, run: Mapping[str, Any]) -> tuple[_Templates | None, list[str]]:
    """Return a run's dataset, and notes. If its file is gone, the dataset is rebuilt from the run's results."""
    path = recorded_dataset(run, folder)
    if path is not None and os.path.exists(path):  # noqa: PTH110 - a path that no system accepts is missing
        loaded = read_dataset(path)
        return loaded.templates, list(loaded.notes)
    lost = "The run names no file of its dataset" if path is None else f"The dataset {path} of the run is missing"
    if (folder / RESULTS_FILE).is_file():
        taken = "the templates and their order are those of its results"
        return _templates_in(iter_results(folder / RESULTS_FILE)), [f"{lost}: {taken}. --dataset FILE names another."]
    return None, [f"{lost}: all questions are in one template. --dataset FILE names it."]


def _templates_in(results: Iterable[Mapping[str, Any]]) -> _Templates:
    """Return the templates and questions that results contain, with the references as they were before scoring."""
    templates: dict[str, dict[str, Any]] = {}
    for result in results:
        identifier = str(result.get("question_id"))
        question = {"id": identifier, "question_text": result.get("question_text")}
        if result.get("reference_answer") is not None:
            question["reference_answer"] = result["reference_answer"]
        if result.get("reference_steps") is not None:
            question["reference_steps"] = [
                [{key: value for key, value in step.items() if key != "matches"} for step in group]
                for group in result["reference_steps"]
            ]
        templates.setdefault(str(result.get("template_id")), {}).setdefault(identifier, question)
    return [
        {"template_id": template_id, "questions": list(questions.values())}
        for template_id, questions in templates.items()
    ]


def _unfinished(run: Mapping[str, Any], responses: Mapping[str, Any]) -> Iterator[str]:
    """Say if a run has not ended, or was killed."""
    selected, times = run.get("questions") or {}, run.get("times") or {}
    if times and "finished" not in times:
        answered = sum(1 for identifier in selected if identifier in responses)
        yield f"The run has not ended, or was killed: {answered:,} of its {len(selected):,} questions have a response."


# --- the draft -------------------------------------------------------------------------------------------------------


class _Drafting:
    """Drafts questions, and notes those that are left out."""

    def __init__(
        self, responses: Mapping[str, Mapping[str, Any]], config: EvaluationConfig, keep_references: bool
    ) -> None:
        self._config = config
        self._keep_references = keep_references
        self._left = dict(responses)
        self._noted: dict[str, list[str]] = {}

    def template(self, template: Mapping[str, Any]) -> dict[str, Any] | None:
        """Return a template with its drafted questions, or None."""
        questions = [
            drafted
            for question in template.get("questions") or ()
            if (drafted := self._question(question, self._left.pop(str(question["id"]), None))) is not None
        ]
        if not questions:
            return None
        mark = {"draft": True} if any(question.get("draft") for question in questions) else {}
        return {**{key: value for key, value in template.items() if key != "questions"}, **mark, "questions": questions}

    def rest(self, *, has_dataset: bool) -> list[dict[str, Any]]:
        """Return drafts of the questions that no template has."""
        left, self._left = self._left, {}
        questions = []
        for identifier, response in left.items():
            if has_dataset:
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
        drafted = drafted_references(response, self._config)
        new = {key: drafted[key] for key in _REFERENCES if key in drafted and key not in base}
        mark = {"draft": True} if new or not is_kept else {}
        first = {key: base.pop(key) for key in ("id", "question_text")}
        return {**first, **mark, **base, **new}


def _asked_text(response: Mapping[str, Any]) -> str | None:
    text = response.get("question_text")
    return text if isinstance(text, str) and text else None


def drafted_references(response: Mapping[str, Any], config: EvaluationConfig) -> dict[str, Any]:
    """Draft the ``reference_answer`` and ``reference_steps`` from a response; what cannot be drafted is left out."""
    references: dict[str, Any] = {}
    if response.get("actual_answer"):
        references["reference_answer"] = response["actual_answer"]
    names = config.steps.names
    steps = [
        {**step, "name": names.get(str(step.get("name")), str(step.get("name")))}
        for step in response.get("actual_steps") or ()
        if isinstance(step, Mapping)
    ]
    calls = [call for call in response.get("llm_calls") or () if isinstance(call, Mapping)]
    groups = _groups(steps, sorted(str(call["started_at"]) for call in calls if "started_at" in call), config)
    if groups:
        references["reference_steps"] = groups
    return references


def _groups(
    steps: list[dict[str, Any]], models_asked: Sequence[str], config: EvaluationConfig
) -> list[list[dict[str, Any]]]:
    """Return the drafted groups; steps without a call of a model in between were requested at once."""
    views = StepViews(config.steps, config.sparql, config.retrieval)
    document_names = config.retrieval.document_step_names(config.steps.names)
    successful = [step for step in steps if step_status(step.get("status", "success")) == "success"]
    drafted: dict[tuple[str, str], tuple[object, list[dict[str, Any]]]] = {}
    for place, step in enumerate(successful):
        name = step["name"]
        kind = _kind_of(step, document_names, views)
        reference = None if kind is None else _reference_step(kind, step, successful[place + 1 :])
        if kind is None or reference is None:
            continue
        if kind is ROWS and views.own_kind_of(views.reference_view(reference)) is not ROWS:
            reference["output_media_type"] = SPARQL_RESULTS  # its name alone does not say that it returns rows
        key = (name, str(reference.get("output")) if kind.drafts_each else "")
        started = step.get("execution_timestamp")
        request = bisect_right(models_asked, str(started)) if models_asked and started else -1 - place
        if not kind.drafts_each and drafted.get(key, (None,))[0] != request:
            drafted.pop(key, None)
        group = drafted.setdefault(key, (request, []))[1]
        if kind.drafts_each:
            group.clear()
        if reference not in group:
            group.append(reference)
    return [group for _, group in drafted.values()]


def _kind_of(step: Mapping[str, Any], document_names: frozenset[str], views: StepViews) -> StepKind | None:
    """Return the kind of an actual step by the config, its name or the form of its output; None if it has none."""
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
    """Return whether scoring can read a query's output as rows; if so, the draft keeps the output unchanged."""
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
        raise MatcherError(f"the draft of {kind.key} returned {reference!r:.80}", hint=hint)
    return None if reference is None else dict(reference)
