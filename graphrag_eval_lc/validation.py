"""What is wrong with a reference dataset and with responses to it: every problem at once, with its place."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from os import PathLike
from typing import Any, cast

from graphrag_eval_lc.config import ConfigSource, EvaluationConfig, load_config
from graphrag_eval_lc.dataset import RESPONSES, TEMPLATES, read_response_records
from graphrag_eval_lc.errors import DatasetError, MatcherError
from graphrag_eval_lc.matching.comparison import StepView, UnreadableOutput
from graphrag_eval_lc.matching.relevant_ids import parse_relevant_ids
from graphrag_eval_lc.matching.retrieval_steps import RetrievalSteps
from graphrag_eval_lc.matching.unknown_tools import UnknownTools, reference_names
from graphrag_eval_lc.reading import Source
from graphrag_eval_lc.record_files import Finding, Location, RecordFile, format_findings, read_records
from graphrag_eval_lc.records import Response, Template
from graphrag_eval_lc.registry.step_kinds import Check, StepKind, is_built_in, step_kind_for


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing that is wrong.

    Attributes:
        what: What is wrong.
        mend: How to put it right.
        path: The file; None for records that were made in Python.
        line: The line, from 1, where there is a file.
        question_id: The question that it concerns.
        key: The key that it concerns, such as ``[0].questions[2].id``.
    """

    what: str
    mend: str
    path: str | None = None
    line: int | None = None
    question_id: str | None = None
    key: str | None = None

    def __str__(self) -> str:
        return str(
            DatasetError(
                self.what, path=self.path, line=self.line, question_id=self.question_id, key=self.key, mend=self.mend
            )
        )


def validate_dataset(
    dataset: Source | Sequence[Template],
    responses: Source | Mapping[str, Response] | Sequence[Response] | None = None,
    config: ConfigSource = None,
) -> list[Problem]:
    """Find everything that is wrong with a dataset and, if given, with responses to it.

    Args:
        dataset: A path, an open file, or a list of templates.
        responses: A path, an open file, responses by question id, or a list of responses.
        config: A path, a dict or an EvaluationConfig with which the responses are scored: it names the tools.

    Returns:
        The problems, those of the dataset first, in the order of the file; an empty list where all is well.

    Raises:
        DatasetError: The dataset cannot be read at all.
        ResponsesError: The responses cannot be read at all.
        ConfigError: The config has a key or value that does not exist.

    Example:
        >>> [problem.what for problem in validate_dataset([{"template_id": "t", "questions": [{"id": "q"}]}])]
        ['the key question_text is missing']
    """
    settings = load_config(config, has_llm=True, has_embeddings=True)  # nothing is judged here
    templates = _dataset_records(dataset)
    problems = _problems(templates, _dataset_findings(templates, settings))
    if responses is not None:
        records = _response_records(responses)
        problems += _problems(records, _response_findings(records, templates))
        problems += _problems(templates, _questions_without_response(templates, records))
        problems += _problems(records, _unknown_tools(templates, records, settings))
    return problems


def _dataset_records(dataset: Source | Sequence[Template]) -> RecordFile:
    if isinstance(dataset, str | PathLike) or hasattr(dataset, "read"):
        return read_records(cast("Source", dataset), DatasetError, what="reference dataset")
    return RecordFile(_listed(dataset))


def _response_records(responses: Source | Mapping[str, Response] | Sequence[Response]) -> RecordFile:
    if isinstance(responses, str | PathLike) or hasattr(responses, "read"):
        return read_response_records(cast("Source", responses))
    if isinstance(responses, Mapping):
        return RecordFile(
            [
                {"question_id": str(key), **response} if isinstance(response, Mapping) else response
                for key, response in responses.items()
            ]
        )
    return RecordFile(_listed(responses))


def _listed(records: Any) -> Any:
    """Give any collection of records but a mapping as a list."""
    return list(records) if isinstance(records, Iterable) and not isinstance(records, Mapping | bytes) else records


def _problems(records: RecordFile, findings: Iterable[Finding]) -> list[Problem]:
    return [Problem(finding.what, finding.mend, **records.place_of(finding)) for finding in findings]


def _dataset_findings(dataset: RecordFile, config: EvaluationConfig) -> Iterator[Finding]:
    if dataset.file is not None and dataset.file.format == "yaml" and dataset.line_index is not None:
        for key, line in dataset.line_index.repeated_keys():
            yield Finding(f"the key {key} stands twice, and only the last counts", "Remove one of them.", line=line)
    yield from format_findings(TEMPLATES, dataset.values)
    yield from _repeated(_template_ids(dataset.values), "two templates have the id {}", "Give each an id of its own.")
    questions = list(_questions(dataset.values))
    ids = [((*location, "id"), str(question.get("id"))) for location, question in questions if "id" in question]
    yield from _repeated(ids, "two questions have the id {}", "Give each question an id of its own.")
    yield from _same_texts(questions)
    retrieval = RetrievalSteps(config.retrieval, config.steps.names)
    for location, question in questions:
        yield from _question_findings(location, question, retrieval)


def _template_ids(values: Any) -> list[tuple[Location, str]]:
    return [
        ((index, "template_id"), str(template["template_id"]))
        for index, template in enumerate(_list(values))
        if isinstance(template, Mapping) and template.get("template_id") is not None
    ]


def _questions(values: Any) -> Iterator[tuple[Location, Mapping[str, Any]]]:
    """Give each question that is one with its location; what is none is a finding of the format."""
    for index, template in enumerate(_list(values)):
        for place, question in enumerate(_list(template.get("questions")) if isinstance(template, Mapping) else ()):
            if isinstance(question, Mapping):
                yield (index, "questions", place), question


def _list(value: Any) -> Sequence[Any]:
    return value if isinstance(value, list | tuple) else []


def _repeated(places: Iterable[tuple[Location, str]], what: str, mend: str) -> Iterator[Finding]:
    seen: set[str] = set()
    for location, text in places:
        if text in seen:
            yield Finding(what.format(text), mend, location)
        seen.add(text)


def _same_texts(questions: Iterable[tuple[Location, Mapping[str, Any]]]) -> Iterator[Finding]:
    """Find the same question in two templates; within one template it may be asked with other parameters."""
    first: dict[str, Location] = {}
    for location, question in questions:
        text = question.get("question_text")
        if not isinstance(text, str):
            continue
        earlier = first.setdefault(" ".join(text.split()).casefold(), location)
        if earlier[0] != location[0]:
            yield Finding(
                f"the same question stands in another template, at [{earlier[0]}].questions[{earlier[2]}]",
                "Keep it in one of them.",
                (*location, "question_text"),
            )


def _question_findings(location: Location, question: Mapping[str, Any], retrieval: RetrievalSteps) -> Iterator[Finding]:
    for group_index, group in enumerate(_list(question.get("reference_steps"))):
        place = (*location, "reference_steps", group_index)
        if isinstance(group, list | tuple) and not group:
            yield Finding("an empty group of reference steps", "Remove it, or add the steps that belong to it.", place)
        for index, step in enumerate(_list(group)):
            if isinstance(step, Mapping):
                yield from _step_findings((*place, index), step, retrieval)


def _step_findings(location: Location, step: Mapping[str, Any], retrieval: RetrievalSteps) -> Iterator[Finding]:
    name, media_type = str(step.get("name")), step.get("output_media_type")
    texts = {"name": name, "output_media_type": media_type if isinstance(media_type, str) else None}
    reference = retrieval.reference_view({**step, **texts}, {})
    kind = step_kind_for(*retrieval.compared_by(reference))
    if step.get("relevant_ids") is not None:
        yield from _relevant_ids_findings((*location, "relevant_ids"), step["relevant_ids"])
        # An output beside them is there for its texts.
        if retrieval.includes(reference) or (step.get("output") is None and is_built_in(kind)):
            return
    for finding in _kind_findings(kind, reference):
        at = finding.location if not finding.location or finding.location[0] in step else ()
        yield replace(finding, location=(*location, *at))


def _kind_findings(kind: StepKind, reference: StepView) -> Iterator[Finding]:
    """Find what is wrong with a reference step of a kind, with locations that begin in the step."""
    if kind.reads == "output" and kind.check is None and kind.parse is None:
        kind = step_kind_for(None, reference["output_media_type"])
    try:
        if kind.check is not None:
            yield from _checked(kind, kind.check, reference)
        elif kind.reads == "args":
            if not isinstance(reference.get("args"), Mapping):
                yield Finding(f"a {reference['name']} step is compared by its args, and has none", "Add args.")
        elif kind.parse is not None:
            reference.parsed(kind.parse)
        elif reference.get("output") is None:
            yield Finding("no output to compare with", "Add output: what a good agent sees.", ("output",))
    except UnreadableOutput as problem:
        what = f"the output cannot be read as {kind.title}: {problem}"
        yield Finding(what, "Store what the tool gives.", ("output",))


def _checked(kind: StepKind, check: Check, reference: StepView) -> list[Finding]:
    try:
        findings = list(check(reference))
    except UnreadableOutput:
        raise
    except Exception as problem:
        what = f"the check of {kind.key} failed with {type(problem).__name__}: {str(problem) or 'no message':.200}"
        return [Finding(what, "Mend the step, or the function that checks it.")]
    for finding in findings:
        if not isinstance(finding, Finding):
            mend = "A check gives Findings of graphrag_eval_lc.matching."
            raise MatcherError(f"the check of {kind.key} gave {finding!r:.80}", mend=mend)
    return findings


def _relevant_ids_findings(location: Location, relevant_ids: Any) -> Iterator[Finding]:
    try:
        if isinstance(relevant_ids, Collection) and not isinstance(relevant_ids, str | bytes):  # as the format has it
            parse_relevant_ids(relevant_ids)
    except UnreadableOutput as problem:
        mend = "List ids, or groups of ids of which one will do, or give each id its gain."
        yield Finding(str(problem), mend, location)


def _response_findings(responses: RecordFile, dataset: RecordFile) -> Iterator[Finding]:
    yield from format_findings(RESPONSES, responses.values)
    known = {str(question.get("id")) for _, question in _questions(dataset.values)}
    identified = _identified(responses)
    for location, response in identified:
        if str(response["question_id"]) not in known:
            yield Finding("a response to a question that the dataset does not have", "Check its question_id.", location)
    keys = [(location, _key_text(response)) for location, response in identified]
    yield from _repeated(keys, "two responses to the question {}; the last one counts", "Remove one of them.")


def _key_text(response: Mapping[str, Any]) -> str:
    repeat = response.get("repeat")
    return f"{response['question_id']}" + (f" (repeat {repeat})" if repeat not in (None, 1) else "")


def _identified(responses: RecordFile) -> list[tuple[Location, Mapping[str, Any]]]:
    """Give each response that has a question id, with the place of that id."""
    return [
        ((index, "question_id"), response)
        for index, response in enumerate(_list(responses.values))
        if isinstance(response, Mapping) and response.get("question_id") is not None
    ]


def _questions_without_response(dataset: RecordFile, responses: RecordFile) -> Iterator[Finding]:
    answered = {str(response["question_id"]) for _, response in _identified(responses)}
    for location, question in _questions(dataset.values):
        if question.get("id") is not None and str(question["id"]) not in answered:
            yield Finding("the question has no response", "Ask the agent, or leave the question out.", location)


def _unknown_tools(dataset: RecordFile, responses: RecordFile, config: EvaluationConfig) -> Iterator[Finding]:
    """Find tools whose names no reference step has, each at its first call."""
    questions = {str(question.get("id")): question for _, question in _questions(dataset.values)}
    last = {_key_text(response): response for _, response in _identified(responses)}
    tools = UnknownTools(config, reference_names(dataset.values))
    for response in last.values():
        tools.add(questions.get(str(response["question_id"]), {}).get("reference_steps"), response)
    for unknown in tools.found():
        hint = f"{unknown.hint[:1].upper()}{unknown.hint[1:]}."
        yield Finding(unknown.what, hint, _first_call(responses, unknown.tools[0]))


def _first_call(responses: RecordFile, tool: str) -> Location:
    for index, response in enumerate(_list(responses.values)):
        for place, step in enumerate(_list(response.get("actual_steps")) if isinstance(response, Mapping) else ()):
            if isinstance(step, Mapping) and str(step.get("name")) == tool:
                return index, "actual_steps", place, "name"
    return ()
