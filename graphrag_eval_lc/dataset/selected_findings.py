"""Which findings of a dataset and of responses are of the selected questions."""

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping
from copy import copy
from functools import cached_property
from typing import Any

from graphrag_eval_lc.dataset.selection import Selection, answered_note
from graphrag_eval_lc.files.record_file import Finding, Location, RecordFile

_DEPTH = len(("index of the template", "questions", "index of the question"))


class SelectedFindings:
    """Keeps the findings that are of the selected questions, or of none: those of a whole file.

    Records may break their format in any way.

    Args:
        selection: The selection.
        dataset: The templates.
        responses: The responses; None where there are none.

    Raises:
        DatasetError: The dataset lacks an id that was selected.
    """

    def __init__(self, selection: Selection, dataset: RecordFile, responses: RecordFile | None) -> None:
        self._selection = selection
        self._dataset = dataset
        self._responses = responses
        named = [(template.get("template_id"), question.get("id")) for _, template, question in _questions(dataset)]
        templates = [str(template.get("template_id")) for _, template in _mappings(dataset.values)]
        selection.refuse_unknown(templates, [str(identifier) for _, identifier in named])
        self._known = {str(identifier) for _, identifier in named}
        names = selection.by_id()
        self._by_id = {str(identifier) for template, identifier in named if names(template, identifier)}
        answered = {_question_id(response) for _, response in _mappings(responses.values if responses else ())}
        self._ids = self._by_id & answered if selection.answered_only else self._by_id

    def note(self) -> str | None:
        """Say how many of the questions have a response, where only these are checked."""
        if not self._selection.answered_only:
            return None
        return answered_note(len(self._ids), len(self._by_id), "checked")

    def of_dataset(self, findings: Iterable[Finding]) -> Iterator[Finding]:
        """Yield the findings in selected questions, in their templates, and of the whole file."""
        for finding in findings:
            if self._selection.is_all or self._is_of_dataset(finding):
                yield finding

    def of_responses(self, findings: Iterable[Finding]) -> Iterator[Finding]:
        """Yield the findings in responses to selected questions or to none that is known, and of the whole file."""
        for finding in findings:
            index = finding.location[0] if finding.location else None
            if self._selection.is_all or not isinstance(index, int) or self._is_response(self._response_at(index)):
                yield finding

    def responses(self, records: RecordFile) -> RecordFile:
        """Return the responses with None in place of those to questions that are not selected."""
        if self._selection.is_all or not isinstance(records.values, list):
            return records
        selected = copy(records)
        selected.values = [each if self._is_response(each) else None for each in records.values]
        return selected

    def _response_at(self, index: int) -> Any:
        return self._responses.values[index] if self._responses is not None else None

    def _is_response(self, response: Any) -> bool:
        identifier = _question_id(response) if isinstance(response, Mapping) else None
        return identifier is None or identifier in self._ids or identifier not in self._known

    def _is_of_dataset(self, finding: Finding) -> bool:
        location = finding.location
        if not location:
            return finding.line is None or self._is_line(finding.line)
        is_in_question = len(location) >= _DEPTH and location[1] == "questions"
        return location[:_DEPTH] in self._places if is_in_question else location[:1] in self._templates

    @cached_property
    def _places(self) -> set[Location]:
        """The locations of the selected questions."""
        return {place for place, _, question in _questions(self._dataset) if str(question.get("id")) in self._ids}

    @cached_property
    def _templates(self) -> set[Location]:
        """The locations of their templates, and of those that were named, which may have no questions."""
        named = () if self._selection.question_ids else self._selection.template_ids
        templates = _mappings(self._dataset.values)
        by_name = {(index,) for index, template in templates if str(template.get("template_id")) in named}
        return {place[:1] for place in self._places} | by_name

    def _is_line(self, line: int) -> bool:
        """Return whether a line is that of a selected question or of its template."""
        starts = self._starts
        before = bisect_right(starts, (line, True)) - 1
        if before < 0:
            return True
        last = starts[before][0]
        return any(is_selected for start, is_selected in starts if start == last)

    @cached_property
    def _starts(self) -> list[tuple[int, bool]]:
        """The lines at which templates and questions begin, and whether each is selected."""
        places = [(index,) for index, _ in _mappings(self._dataset.values)]
        chosen = {*self._places, *self._templates}
        every: list[Location] = [*places, *(place for place, _, _ in _questions(self._dataset))]
        lines = ((self._dataset.line_of(place), place in chosen) for place in every)
        return sorted((line, is_selected) for line, is_selected in lines if line is not None)


def _mappings(records: Any) -> Iterator[tuple[int, Mapping[str, Any]]]:
    for index, record in enumerate(records if isinstance(records, list | tuple) else ()):
        if isinstance(record, Mapping):
            yield index, record


def _questions(dataset: RecordFile) -> Iterator[tuple[Location, Mapping[str, Any], Mapping[str, Any]]]:
    """Yield each question with its location and its template."""
    for index, template in _mappings(dataset.values):
        for place, question in _mappings(template.get("questions")):
            yield (index, "questions", place), template, question


def _question_id(response: Mapping[str, Any]) -> str | None:
    identifier = response.get("question_id")
    return None if identifier is None else str(identifier)
