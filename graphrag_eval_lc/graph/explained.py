"""Explain failed steps by their queries: terms that the graph lacks, and differences from the reference query."""

import logging
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

from graphrag_eval_lc.config import GraphConfig
from graphrag_eval_lc.dataset.query_language import Language, language_of
from graphrag_eval_lc.graph.cypher_queries import cypher_differences, lint_cypher
from graphrag_eval_lc.graph.query_difference import Difference, in_words, query_differences
from graphrag_eval_lc.graph.query_forms import TooLargeQueryError
from graphrag_eval_lc.graph.query_lint import LintRule, QueryFinding, lint_query
from graphrag_eval_lc.graph.sql_queries import sql_differences
from graphrag_eval_lc.graph.vocabulary import Vocabulary, load_vocabulary
from graphrag_eval_lc.texts import error_text, visible

_log = logging.getLogger(__name__)
_LESS_TELLING: tuple[LintRule, ...] = ("unbound_variable", "disconnected_patterns", "no_limit")
_MOST_DIFFERENCES = 3
"""With more differences, no single one explains the failure."""
_TOO_LARGE = "The query, or the reference query, is too large to be compared."


class QueryExplainer:
    """Explains failed queries with one configuration.

    Args:
        config: The section ``graph``.

    Raises:
        ConfigError: The vocabulary cannot be read.
    """

    def __init__(self, config: GraphConfig) -> None:
        self._prefixes = config.prefixes
        self._vocabulary: Vocabulary | None = None
        if config.vocabulary is not None and (path := Path(config.vocabulary)).is_file():
            self._vocabulary = load_vocabulary(path)

    def add_to(self, result: dict[str, Any]) -> None:
        """Add the explanation to each failed reference step of a result: as the key ``query``, and to its reason.

        ``query`` has ``cause`` (the rule or kind that explains most; absent if none does), ``sentence``, ``findings``
        and ``differences``.
        """
        steps = {
            str(index if step.get("id") is None else step["id"]): step
            for index, step in enumerate(result.get("actual_steps") or ())
        }
        for group, diagnoses in zip(
            result.get("reference_steps") or (), result.get("steps_diagnosis") or (), strict=True
        ):
            for reference, diagnosis in zip(group, diagnoses, strict=True):
                if diagnosis["outcome"] == "mismatch" and not diagnosis["matched"]:
                    explained = self._explained(reference, steps.get(diagnosis.get("nearest", "")))
                    if explained:
                        diagnosis["query"] = explained
                        diagnosis["reason"] = f"{explained['sentence']} {diagnosis['reason']}"

    def _explained(self, reference: Mapping[str, Any], actual: Mapping[str, Any] | None) -> dict[str, Any]:
        query, expected = (_query_of(step) for step in (actual, reference))
        if actual is None or query is None:
            return {}
        language = language_of(query)
        findings: list[QueryFinding] = []
        differences: list[Difference] = []
        too_large = ""
        try:
            if language == "SPARQL":
                was_answered = actual.get("status") == "success"
                findings = lint_query(query, self._vocabulary, prefixes=self._prefixes, was_answered=was_answered)
            elif language == "Cypher" and self._vocabulary is not None:
                findings = lint_cypher(query, self._vocabulary)
            findings = [each for each in findings if each.rule != "too_large"]
            if expected is not None and language == language_of(expected):
                differences = self._differences(language, expected, query, reference)
        except TooLargeQueryError:
            too_large = _TOO_LARGE
        except Exception as problem:  # a query that cannot be read, a missing sqlglot, or a defect of a comparison
            _log.debug("The queries are not compared: %s", visible(error_text(problem)))
        sentence = " ".join(filter(None, [*(f"{each}." for each in findings[:2]), in_words(differences), too_large]))
        if not sentence:
            return {}
        record: dict[str, Any] = {"sentence": sentence}
        if (cause := _cause(findings, differences)) is not None:
            record = {"cause": cause} | record
        if findings:
            keys: tuple[str, ...] = ("rule", "what", "hint", "line", "column")
            record["findings"] = [
                {key: value for key in keys if (value := getattr(each, key)) not in (None, "")} for each in findings
            ]
        if differences:
            keys = ("kind", "sentence", "expected", "actual", "column")
            record["differences"] = [
                {key: value for key in keys if (value := getattr(each, key)) is not None} for each in differences
            ]
        return record

    def _differences(
        self, language: Language | None, expected: str, query: str, reference: Mapping[str, Any]
    ) -> list[Difference]:
        if language == "SQL":
            return sql_differences(expected, query)
        if language == "Cypher":
            return cypher_differences(expected, query)
        columns, is_ordered = reference.get("required_columns"), bool(reference.get("ordered"))
        return query_differences(expected, query, required_columns=columns, ordered=is_ordered, prefixes=self._prefixes)


@lru_cache(maxsize=8)
def _explainer(config: str, _: float | None) -> QueryExplainer:
    return QueryExplainer(GraphConfig.model_validate_json(config))


def explainer_of(config: GraphConfig) -> QueryExplainer:
    """Return the cached explainer of a configuration; a new one after its vocabulary was written.

    Raises:
        ConfigError: The vocabulary cannot be read.
    """
    path = None if config.vocabulary is None else Path(config.vocabulary)
    written_at = path.stat().st_mtime if path is not None and path.is_file() else None
    return _explainer(config.model_dump_json(), written_at)


def _query_of(step: Mapping[str, Any] | None) -> str | None:
    args = step.get("args") if step is not None else None
    query = args.get("query") if isinstance(args, Mapping) else None
    return query if isinstance(query, str) and language_of(query) is not None else None


def _cause(findings: list[QueryFinding], differences: list[Difference]) -> str | None:
    """Return what explains the failure: a mistake that is certain, else the first of a few differences."""
    certain = [each.rule for each in findings if each.rule not in _LESS_TELLING]
    if certain:
        return certain[0]
    if differences and (len(differences) <= _MOST_DIFFERENCES or differences[0].kind == "class"):
        return differences[0].kind  # a wrong class causes all other differences
    return findings[0].rule if findings else None
