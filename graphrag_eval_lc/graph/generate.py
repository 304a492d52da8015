"""Make a reference dataset from templates: each row of a query for values becomes a question with its results."""

import asyncio
import random
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from graphrag_eval_lc.dataset.sparql_endpoint import EndpointError, Graph
from graphrag_eval_lc.errors import DatasetError
from graphrag_eval_lc.files.reading import LineIndex, parse_yaml, read_text
from graphrag_eval_lc.graph.dataset_text import result_text
from graphrag_eval_lc.graph.sources import GraphSource, Row, rows_of
from graphrag_eval_lc.matching.rows.results import SPARQL_RESULTS
from graphrag_eval_lc.texts import counted, shortened

Split: TypeAlias = Literal["template", "value"]
"""What is never divided between ``dev`` and ``test``: the questions of a template, or those on the same values."""

_PLACEHOLDER = re.compile(r"\{([A-Za-z_]\w*)\}")
_MOST_ROWS = 1_000
_ESCAPES = str.maketrans({"\\": "\\\\", '"': '\\"', "'": "\\'", "\n": "\\n", "\r": "\\r"})
_NO_ID = re.compile(r"[^0-9A-Za-z]+")


class QuestionTemplate(BaseModel):
    """A template of questions.

    ``{name}`` in its texts is the value of the column ``name`` of the query for values.

    Attributes:
        template_id: The id of the template in the dataset. Several may have the same, such as for other wordings.
        question_texts: One or more wordings, which take turns.
        values: A SELECT query: each row becomes a question.
        reference_steps: The groups of reference steps. A step with ``args: {query: …}`` and no ``output`` gets the
            results of the query.
        id: The id of a question; if it is missing, the template's id and the first value.
        reference_answer: The answer, or None. ``{rows}`` is the number of rows of the last query, and
            ``{rows:…}`` repeats a text for each row of it, such as ``{rows:{name} ({ratedS} MVA)}``. After an ASK it
            may be a mapping with an answer for "true" and for "false".
        most: The largest number of questions, chosen by the seed; None for all.
        keep_empty: Whether a question whose query returns no rows is kept.
        most_rows: Questions whose query returns more rows are left out.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    template_id: str
    question_texts: Annotated[list[str], Field(min_length=1)]
    values: str
    reference_steps: Annotated[list[list[dict[str, Any]]], Field(min_length=1)]
    id: str | None = None
    reference_answer: str | dict[Literal["true", "false"], str] | None = None
    most: Annotated[int, Field(gt=0)] | None = None
    keep_empty: bool = False
    most_rows: Annotated[int, Field(gt=0)] = _MOST_ROWS


@dataclass
class Generated:
    """A dataset that was made from templates.

    Attributes:
        templates: The dataset.
        splits: The ids of its questions by split; empty if it was not split.
        left_out: How many questions were left out, by reason.
    """

    templates: list[dict[str, Any]] = field(default_factory=list)
    splits: dict[str, list[str]] = field(default_factory=dict)
    left_out: Counter[str] = field(default_factory=Counter)

    @property
    def number_of_questions(self) -> int:
        """The number of questions."""
        return sum(len(template["questions"]) for template in self.templates)

    def __str__(self) -> str:
        parts = [f"{counted(self.number_of_questions, 'question')} of {counted(len(self.templates), 'template')}"]
        parts += [f"{name}: {len(ids)}" for name, ids in sorted(self.splits.items())]
        parts += [f"left out: {number} ({reason})" for reason, number in self.left_out.most_common()]
        return "; ".join(parts)

    def split(self, name: str) -> list[dict[str, Any]]:
        """Return the part of the dataset in a split."""
        ids = set(self.splits.get(name, ()))
        parts = [
            {**template, "questions": [each for each in template["questions"] if each["id"] in ids]}
            for template in self.templates
        ]
        return [part for part in parts if part["questions"]]


def load_templates(path: Path) -> list[QuestionTemplate]:
    """Load templates from YAML or JSON.

    Raises:
        DatasetError: They cannot be read, or break the form; with the line and the key.
    """
    file = read_text(path, DatasetError, what="list of templates")
    value = parse_yaml(file, DatasetError, what="list of templates")
    try:
        templates = TypeAdapter(list[QuestionTemplate]).validate_python(value)
    except ValidationError as problem:
        first = problem.errors()[0]
        line = LineIndex(file).line_of(first["loc"])
        key = ".".join(map(str, first["loc"]))
        raise DatasetError(first["msg"], path=path, line=line, key=key) from problem
    return templates


async def generate_dataset(
    templates: Sequence[QuestionTemplate],
    source: GraphSource,
    *,
    seed: int = 0,
    split: Split | None = None,
    test_share: float = 0.3,
    max_concurrency: int = 4,
    on_progress: Callable[[int, int], None] | None = None,
) -> Generated:
    """Make a dataset. The same templates, graph and seed make the same dataset; ids do not depend on the seed.

    Args:
        templates: The templates.
        source: The graph.
        seed: Chooses the values if a template has more than ``most``, and what is in which split.
        split: What stays together in ``dev`` or ``test``; None does not split the questions.
        test_share: The share of ``test``.
        max_concurrency: How many queries are run at the same time.
        on_progress: Called with the number of questions that are done, and of all known so far.

    Raises:
        DatasetError: A query for values fails or returns no rows, or a placeholder has no column.
    """
    made = Generated()
    limit = asyncio.Semaphore(max_concurrency)
    values_of: dict[str, tuple[str, ...]] = {}
    by_id: dict[str, list[dict[str, Any]]] = {}
    done = total = 0
    async with source.open() as graph:

        async def question(template: QuestionTemplate, number: int, row: Row) -> dict[str, Any] | str:
            nonlocal done
            async with limit:
                outcome = await _question(template, number, row, graph)
            done += 1
            if on_progress is not None:
                on_progress(done, total)
            return outcome

        for template in templates:
            rows = await _values(template, graph, seed)
            total += len(rows)
            outcomes = await asyncio.gather(*(question(template, number, row) for number, row in enumerate(rows)))
            questions = []
            for row, outcome in zip(rows, outcomes, strict=True):
                if isinstance(outcome, str):
                    made.left_out[outcome] += 1
                    continue
                questions.append(outcome)
                values_of[outcome["id"]] = tuple(row.values())
            if questions:
                by_id.setdefault(template.template_id, []).extend(questions)
    made.templates = [{"template_id": name, "questions": questions} for name, questions in by_id.items()]
    _refuse_repeated_ids(made)
    if split is not None:
        made.splits = _splits(made, split, test_share, seed, values_of)
    return made


async def _values(template: QuestionTemplate, graph: Graph, seed: int) -> list[Row]:
    """Return the values of a template, sorted, so that the order of the store does not matter."""
    try:
        rows = rows_of(await graph.results(template.values))
    except EndpointError as problem:
        raise DatasetError(f"the query for values fails: {problem}", key=f"{template.template_id}.values") from problem
    if not rows:
        raise DatasetError("the query for values returns no rows", key=f"{template.template_id}.values")
    names = list(dict.fromkeys(name for row in rows for name in row))
    rows = [{name: row.get(name, "") for name in names} for row in rows]
    rows = sorted(rows, key=lambda row: sorted(row.items()))
    if template.most is not None and len(rows) > template.most:
        chosen = random.Random(f"{seed} {template.template_id}").sample(range(len(rows)), template.most)
        rows = [rows[at] for at in sorted(chosen)]
    return rows


async def _question(template: QuestionTemplate, number: int, row: Row, graph: Graph) -> dict[str, Any] | str:
    """Return a question; or the reason why it is left out."""
    rows: list[Row] = []
    truth: Literal["true", "false"] | None = None
    if any(value == "" for value in row.values()):
        return "a value is missing"
    groups = filled(template.reference_steps, row, template.template_id)
    for step in (each for group in groups for each in group):
        query = step["args"].get("query") if isinstance(step.get("args"), dict) else None
        if not isinstance(query, str) or "output" in step:
            continue
        try:
            results = await graph.results(query)
        except EndpointError as problem:
            return f"the query fails: {shortened(str(problem), 100)}"
        rows = rows_of(results)
        if "boolean" in results:
            truth = "true" if results["boolean"] else "false"
        elif not rows and not template.keep_empty:
            return "no rows"
        if len(rows) > template.most_rows:
            return f"more than {template.most_rows:,} rows"
        step |= {"output": result_text(results), "output_media_type": SPARQL_RESULTS}
    text = template.question_texts[number % len(template.question_texts)]
    slug = _NO_ID.sub("_", next(iter(row.values()))).strip("_").lower()
    made: dict[str, Any] = {
        "id": f"{template.template_id}_{slug}"
        if template.id is None
        else filled(template.id, row, template.template_id),
        "question_text": filled(text, row, template.template_id),
    }
    answer = template.reference_answer
    if isinstance(answer, dict):
        answer = answer.get(truth) if truth is not None else None
    if answer is not None:
        made["reference_answer"] = _answer(answer, rows, row, template.template_id)
    return {**made, "reference_steps": groups}


def filled(value: Any, row: Row, template_id: str) -> Any:
    """Return a value with the placeholders of its texts filled in.

    Raises:
        DatasetError: A placeholder has no column.

    Example:
        >>> filled({"query": "ASK { <{line}> ?p ?o }"}, {"line": "urn:a"}, "t")
        {'query': 'ASK { <urn:a> ?p ?o }'}
    """
    if isinstance(value, str):

        def value_of(found: re.Match[str]) -> str:
            if found[1] not in row:
                hint = f"The query for values has: {', '.join(row)}."
                raise DatasetError(f"the placeholder {found[0]} has no column", key=template_id, hint=hint)
            return row[found[1]]

        return _PLACEHOLDER.sub(value_of, value)
    if isinstance(value, Mapping):
        escaped = {name: each.translate(_ESCAPES) for name, each in row.items()}
        return {key: filled(each, escaped if key == "query" else row, template_id) for key, each in value.items()}
    return [filled(each, row, template_id) for each in value] if isinstance(value, list) else value


_REPEATED = re.compile(r"\{rows:((?:[^{}]|\{\w+\})*)\}")


def _answer(answer: str, rows: Sequence[Row], row: Row, template_id: str) -> str:
    """Fill an answer with the rows of the last query and the values; braces in a row are not placeholders."""
    parts, end = [], 0
    for found in _REPEATED.finditer(answer):
        parts.append(filled(answer[end : found.start()].replace("{rows}", str(len(rows))), row, template_id))
        each_row = (_PLACEHOLDER.sub(lambda name, each=each: each.get(name[1], ""), found[1]) for each in rows)
        parts.append(", ".join(each_row))
        end = found.end()
    return "".join((*parts, filled(answer[end:].replace("{rows}", str(len(rows))), row, template_id)))


def _refuse_repeated_ids(made: Generated) -> None:
    ids = Counter(question["id"] for template in made.templates for question in template["questions"])
    repeated = next((name for name, number in ids.items() if number > 1), None)
    if repeated is not None:
        hint = "Give the template an id with a placeholder that differs, such as id: lines_{name}."
        raise DatasetError(f"several questions have the id {repeated}", hint=hint)


def _splits(
    made: Generated, split: Split, test_share: float, seed: int, values_of: Mapping[str, tuple[str, ...]]
) -> dict[str, list[str]]:
    """Split the questions so that no template, or no value, is in both parts."""
    questions = [(template["template_id"], each["id"]) for template in made.templates for each in template["questions"]]
    groups: dict[str, list[str]] = {}
    if split == "template":
        for template_id, identifier in questions:
            groups.setdefault(template_id, []).append(identifier)
    else:
        groups = _by_shared_values([identifier for _, identifier in questions], values_of)
    names = sorted(groups)
    random.Random(seed).shuffle(names)
    parts: dict[str, list[str]] = {"dev": [], "test": []}
    wanted = test_share * len(questions)
    for name in names:
        is_for_test = len(parts["test"]) + len(groups[name]) / 2 <= wanted
        parts["test" if is_for_test else "dev"] += groups[name]
    order = {identifier: at for at, (_, identifier) in enumerate(questions)}
    return {name: sorted(ids, key=order.__getitem__) for name, ids in parts.items()}


def _by_shared_values(ids: Sequence[str], values_of: Mapping[str, tuple[str, ...]]) -> dict[str, list[str]]:
    """Group questions that share a value, directly or through other questions."""
    group_of: dict[str, str] = {}
    members: dict[str, list[str]] = {}
    for identifier in ids:
        groups = sorted({group_of[value] for value in values_of[identifier] if value in group_of})
        name = groups[0] if groups else identifier
        members.setdefault(name, []).append(identifier)
        for other in groups[1:]:
            members[name] += members.pop(other)
            group_of |= {value: name for value, group in group_of.items() if group == other}
        group_of |= dict.fromkeys(values_of[identifier], name)
    return members
