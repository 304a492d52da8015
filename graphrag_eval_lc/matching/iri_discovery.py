"""The step kind iri_discovery: whether a search or a query found the IRI as a whole term, and at which rank."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from graphrag_eval_lc.files.record_file import Finding
from graphrag_eval_lc.json_values import json_text
from graphrag_eval_lc.matching.matchers import CutOutput, Step, StepScore, StepView, UnreadableOutput, explained
from graphrag_eval_lc.matching.outputs import cut_mark
from graphrag_eval_lc.matching.rows import read_sparql_results
from graphrag_eval_lc.matching.rows.results import SparqlResults, Term, TermColumn, Triple
from graphrag_eval_lc.matching.rows.row_steps import SPARQL_QUERY, step_results
from graphrag_eval_lc.registry.step_kinds import StepKind

_IRI_DISCOVERY: Final = "iri_discovery"
# The tool that finds IRIs by their labels.
AUTOCOMPLETE_SEARCH: Final = "autocomplete_search"

_SCHEME = r"[A-Za-z][A-Za-z0-9+.-]{0,40}:"
# Outside quotes, commas and brackets end an IRI, although IRIs may contain them. Inside quotes, only the quotes do.
_CHARACTER: Final = r"[^\s<>\"'{}|\\^`,;()\[\]]"
_QUOTED: Final = re.compile(rf"{_SCHEME}[^\s<>\"{{}}|\\^`]+")
_BARE: Final = re.compile(rf"(?<![A-Za-z0-9]){_SCHEME}{_CHARACTER}+")
# Punctuation and Markdown emphasis that may follow an IRI without being part of it.
_PUNCTUATION: Final = ".:!?*…。，、；：！？）】」』》”’»"
_BARE_END: Final = re.compile(rf"[{_PUNCTUATION}]*(?!{_CHARACTER})")
_QUOTED_END: Final = re.compile(rf"[{_PUNCTUATION},;()\[\]]*(?:[\s<>\"'{{}}|\\^`]|\Z|(?<=[,;]){_SCHEME})")
_OPENING: Final = frozenset("<\"'`")
_BREAK: Final = re.compile(r"[\s<>\"'{}|\\^`,;()\[\]]")
# What may come directly before an IRI: "iri=", "**", an opening bracket of any script. It must not begin an IRI.
_BEFORE: Final = re.compile(r"(?:[^:/?#]*[^:/?#A-Za-z0-9+.-])?[+.-]*")
_LONGEST_BEFORE: Final = 200
_ESCAPES: Final = re.compile(r"""(?:\\(?:u[0-9a-fA-F]{4}|["\\/bfnrt]))+""")
_DECLARATION: Final = re.compile(r"(?im)^[ \t]*@?(?:prefix|base)\b[^\n]*")


def readable_text(output: Any) -> str:
    """Return an output as a text without JSON escapes, including those of JSON inside a JSON string."""
    text = output if isinstance(output, str) else json_text(output)
    for _ in range(2):
        if "\\" in text:
            text = _ESCAPES.sub(lambda escapes: str(json.loads(f'"{escapes[0]}"')), text)
    return text


def place_of(text: str, iri: str) -> int | None:
    """Return the index of the first place at which a text has an IRI as a whole term, or None.

    An IRI inside a longer IRI does not count. It is inside one if more characters of an IRI come directly before or
    after it, apart from punctuation. In quotes or angle brackets, everything up to the end of them is one IRI.
    """
    place = text.find(iri)
    while place >= 0:
        if text[place - 1 : place] in _OPENING:
            is_whole = _QUOTED_END.match(text, place + len(iri)) is not None
        else:
            before = _BREAK.split(text[max(0, place - _LONGEST_BEFORE) : place])[-1]
            is_whole = bool(_BEFORE.fullmatch(before) and _BARE_END.match(text, place + len(iri)))
        if is_whole:
            return place
        place = text.find(iri, place + 1)
    return None


def iris_in_text(text: str) -> list[str]:
    """Return what looks like an IRI or a prefixed name in a text, in order, without duplicates."""
    found: dict[str, None] = {}
    for match in _QUOTED.finditer(text):
        bare = _BARE.match(text, match.start())
        ends = [match[0].rstrip("'"), *([bare[0], bare[0].rstrip(_PUNCTUATION)] if bare else ())]
        found.update(dict.fromkeys(ends))
    return list(found)


def terms_of(column: TermColumn, row: int) -> Iterator[tuple[str, str]]:
    """Yield the text and the kind of a cell; for a triple term, those of its parts in reading order."""
    yield column.texts[row], column.kind(row)
    waiting: list[Any] = [column.structures.get(row)]
    while waiting:
        part = waiting.pop()
        if isinstance(part, Triple):
            waiting += [part.object, part.predicate, part.subject]
        elif isinstance(part, Term):
            yield part.text, part.shape[0]


def rank_in_results(results: SparqlResults, iri: str) -> int | None:
    """Return the rank, from 1, of an IRI among the distinct IRIs of results, read row by row."""
    columns = results.columns.values()
    if not any(iri in column.texts or column.structures for column in columns):
        return None
    before: set[str] = set()
    for row in range(results.row_count):
        for text, kind in (term for column in columns for term in terms_of(column, row)):
            if text == iri:
                return len(before) + 1
            if text not in before and (kind == "uri" or _QUOTED.fullmatch(text)):
                before.add(text)
    return None


def rank_in_text(text: str, place: int) -> int:
    """Return the rank, from 1, of the term at an index among the distinct IRIs and prefixed names of a text."""
    terms = _BARE.findall(_DECLARATION.sub("", text[:place]))
    return len({term.rstrip(_PUNCTUATION) for term in terms}) + 1


def match_iri_discovery_steps(reference: StepView, actual: StepView) -> StepScore:
    """Score 1 if the reference step's IRI is in the actual step's output as a whole term.

    The output may have any form: SPARQL results, in which a cell must be the IRI; JSON, a table, lines or a sentence.
    ``urn:a`` does not occur in ``urn:ab``. An error message that quotes the IRI does not count as finding it. The grade
    is 1 ÷ the rank of the IRI among the IRIs of the output.
    """
    iri = reference.get("output")
    if not isinstance(iri, str) or not iri:
        return explained(0.0, "the reference step names no IRI as its output")
    if actual.get("output") is None and actual.declared is None:
        return explained(0.0, "the output is missing")
    tool = actual.tool or actual.get("name")
    missing = explained(0.0, f"{iri} is not in the output of {tool}")
    text = actual.once(_text_of)
    if actual.declared is None and iri not in text and not _may_be_cut(actual, text):
        return missing
    results = None
    try:
        results = step_results(actual)
    except CutOutput:
        # The text is cut, so an IRI at its end may be longer.
        if text.endswith(iri) or place_of(text, iri) is None:
            raise
    except UnreadableOutput as problem:
        if _is_of_error(problem):
            return explained(0.0, f"the output of {tool} is {problem}")
    if results is not None:
        if (rank := rank_in_results(results, iri)) is not None:
            return _found(iri, rank)
        if not results.is_untyped and not results.faults:
            return missing
    if (place := place_of(text, iri)) is not None:
        return _found(iri, rank_in_text(text, place))
    if results is None and (mark := cut_mark(text)) is not None:
        raise CutOutput(f"the output ends with {mark!r}")
    return missing


def _text_of(step: StepView) -> str:
    return readable_text(step.get("output"))


def _is_of_error(problem: UnreadableOutput) -> bool:
    """Return whether an output is an error message, such as ``Error: there is no <urn:a>``."""
    return str(problem).startswith("an error: ")


def _may_be_cut(actual: StepView, output: str) -> bool:
    """Return whether an output may have been cut off; a quick check."""
    is_broken_json = output[:1] in {"{", "["} and output.rstrip()[-1:] not in {"}", "]"}
    return is_broken_json or actual.cut_by_capture is not None or cut_mark(output) is not None


def _found(iri: str, rank: int) -> StepScore:
    return StepScore(
        1.0,
        lambda: f"{iri} is in the output",
        lambda: 1.0,
        grade=lambda: 1 / rank,
        grade_reason=lambda: f"Worth 1/{rank:,}: it is number {rank:,} of the IRIs there.",
    )


def _check_step(step: StepView) -> Iterator[Finding]:
    """Report reference steps without an IRI, or with an IRI that no tool would return in this spelling."""
    output = step.get("output")
    if not isinstance(output, str) or not output:
        yield Finding(f"an {_IRI_DISCOVERY} step needs the IRI as its output", "Write the IRI.", ("output",))
    elif output != (iri := output.strip().removeprefix("<").removesuffix(">").strip()):
        what = "the IRI has angle brackets, spaces or a line break around it, and is looked for with them"
        yield Finding(what, f"Write {iri}.", ("output",), severity="warning")


def _draft_step(step: Step, later: Sequence[Step]) -> dict[str, Any] | None:
    """Return a reference step for the first IRI of a search that a later step uses in its arguments."""
    all_args = [other.get("args") for other in later]
    values = [each for args in all_args for each in (args.values() if isinstance(args, Mapping) else [args])]
    text = "\n".join(value if isinstance(value, str) else json_text(value) for value in values)
    iri = next((each for each in iris_of(step.get("output")) if place_of(text, each) is not None), None)
    if iri is None:
        return None
    given = step.get("args") or {}
    args = {"query": given["query"]} if "query" in given else given
    return {"name": _IRI_DISCOVERY, "args": args, "output": iri, "output_media_type": "text/uri"}


def iris_of(output: Any) -> list[str]:
    """Return the IRIs of an output of any form, in reading order; in a text, also what only looks like one."""
    try:
        results = read_sparql_results(output)
    except UnreadableOutput as problem:
        return iris_in_text(readable_text(output)) if output and not _is_of_error(problem) else []
    if results.is_untyped:
        return iris_in_text("\n".join(text for each in results.columns.values() for text in each.texts))
    columns = results.columns.values()
    return [text for each in columns for row, text in enumerate(each.texts) if each.kind(row) == "uri"]


IRI = StepKind(
    key=_IRI_DISCOVERY,
    title="an IRI",
    serves=((_IRI_DISCOVERY, None),),
    matcher=match_iri_discovery_steps,
    fulfilled_by=(AUTOCOMPLETE_SEARCH, SPARQL_QUERY),
    check=_check_step,
    draft=_draft_step,
    drafted_from=(AUTOCOMPLETE_SEARCH,),
    drafts_each=True,
    shown_as="iri",
)
