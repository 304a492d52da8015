"""Which settings give the figures that graphrag-eval 6.6.1 gives: cases modelled on what it gave for such questions."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from graphrag_eval_lc import compute_aggregates, load_dataset, load_responses, migrate, run_evaluation
from graphrag_eval_lc.config import load_config
from graphrag_eval_lc.errors import (
    ComparisonError,
    ConfigError,
    GraphRAGEvalError,
    NothingToCompareError,
    RunFolderError,
)

XSD = "http://www.w3.org/2001/XMLSchema#"


def rows(variable: str, value: str, datatype: str | None = None) -> str:
    cell = {"type": "literal", "value": value, **({"datatype": XSD + datatype} if datatype else {})}
    return json.dumps({"head": {"vars": [variable]}, "results": {"bindings": [{variable: cell}]}})


def documents(*ids: str) -> str:
    return json.dumps([{"id": each, "text": each} for each in ids])


def wanted_rows(output: str) -> dict[str, Any]:
    return {
        "name": "sparql_query",
        "args": {"query": "Q"},
        "output": output,
        "output_media_type": "application/sparql-results+json",
        "required_columns": json.loads(output)["head"]["vars"],
    }


def wanted_documents(output: str, k: int) -> dict[str, Any]:
    return {"name": "retrieval", "args": {"query": "q", "k": k}, "output": output}


def done(identifier: str, step: dict[str, Any], output: str, k: int | None = None) -> dict[str, Any]:
    args = {**step["args"], **({} if k is None else {"k": k})}
    return {"id": identifier, "status": "success", "name": step["name"], "args": args, "output": output}


def question(identifier: str, *groups: dict[str, Any]) -> dict[str, Any]:
    return {"id": identifier, "question_text": f"{identifier}?", "reference_steps": [[step] for step in groups]}


def response(identifier: str, *steps: dict[str, Any]) -> dict[str, Any]:
    return {"question_id": identifier, "actual_answer": "-", "actual_steps": list(steps)}


ONE, TWO = wanted_rows(rows("a", "1")), wanted_rows(rows("b", "2"))
GROUPS = question("groups", ONE, TWO)
LAST_ALONE = response("groups", done("s1", TWO, rows("x", "2")))
DAWN = wanted_rows(rows("t", "2026-01-01T00:00:00Z", "dateTime"))
TIME = question("time", DAWN)
OTHER_ZONE = response("time", done("s2", DAWN, rows("x", "2026-01-01T01:00:00+01:00", "dateTime")))
FAILED = question("failed", ONE)
FAILURE = {"question_id": "failed", "status": "error", "error": "timeout"}
SEARCH = wanted_documents(documents("d1", "d2"), 4)
DOCUMENTS = question("documents", SEARCH)
ONE_DOCUMENT = response("documents", done("s4", SEARCH, documents("d1"), k=1))


def dataset(*questions: dict[str, Any]) -> list[Any]:
    return [{"template_id": "t", "questions": list(questions)}]


def scores(**found: float) -> list[dict[str, Any]]:
    return [{"question_id": identifier, "steps_score": score} for identifier, score in found.items()]


def test_groups_are_found() -> None:
    found = migrate(dataset(GROUPS), [LAST_ALONE], published=scores(groups=0.5))
    assert found.settings == {"steps": {"scoring": "all_groups"}}
    assert found.chosen.is_all_equal
    assert found.differences == ()


def test_defaults_are_kept_where_they_give_the_figures() -> None:
    found = migrate(dataset(GROUPS), [LAST_ALONE], published=scores(groups=1.0))
    assert found.settings == {}
    assert found.verdict == "The defaults give what graphrag-eval published: the one score."


def test_values_that_are_compared_as_texts_are_found_beside_the_groups() -> None:
    found = migrate(dataset(GROUPS, TIME), [LAST_ALONE, OTHER_ZONE], published=scores(groups=0.5, time=0.0))
    assert found.settings == {"steps": {"scoring": "all_groups"}, "sparql": {"values": {"times": False}}}


def test_k_of_the_agent_is_found_and_the_dataset_written_without_that_of_the_reference(tmp_path: Path) -> None:
    found = migrate(dataset(DOCUMENTS), [ONE_DOCUMENT], published=scores(documents=1.0), output_dir=tmp_path / "moved")
    assert dict(found.chosen.settings) == {"recall@k": "the agent's k"}
    assert found.differences == ()
    [template] = load_dataset(tmp_path / "moved" / "questions.yaml")
    [scored] = run_evaluation([template], [ONE_DOCUMENT])
    assert scored["steps_score"] == 1.0
    assert SEARCH["args"]["k"] == 4  # what was passed is unchanged


@pytest.mark.parametrize(("published_score", "errors"), [(0.0, {"errors": "include"}), (None, None)])
def test_results_tell_whether_failed_questions_counted(published_score: float | None, errors: Any) -> None:
    failed = {"question_id": "failed", "status": "error", "steps_score": published_score}
    published = [*scores(groups=1.0), failed]
    found = migrate(dataset(GROUPS, FAILED), [LAST_ALONE, FAILURE], published=published)
    assert found.settings.get("aggregates") == errors


def test_aggregates_tell_whether_failed_questions_counted() -> None:
    results = run_evaluation(dataset(GROUPS, FAILED), [LAST_ALONE, FAILURE])
    for errors in ("include", "exclude"):
        aggregates = compute_aggregates(results, {"aggregates": {"errors": errors}})
        del aggregates["totals"]
        found = migrate(dataset(GROUPS, FAILED), [LAST_ALONE, FAILURE], published=aggregates)
        assert found.chosen.is_all_equal
        assert found.settings == ({} if errors == "exclude" else {"aggregates": {"errors": "include"}})


def test_zero_of_what_nobody_measured_is_equal() -> None:
    zeros = dict.fromkeys(("sum", "mean", "median", "min", "max"), 0)
    found = migrate(dataset(GROUPS), [LAST_ALONE], published={"micro": {"input_tokens": zeros}})
    assert found.chosen.figures == found.chosen.equal_figures == 5


def test_difference_that_a_setting_alone_explains_names_it() -> None:
    agreeing = [question(str(number), ONE) for number in range(2)]
    answers = [response(str(number), done("s", ONE, rows("x", "1"))) for number in range(2)]
    found = migrate(
        dataset(GROUPS, *agreeing, question("last", ONE, TWO)),
        [LAST_ALONE, *answers, response("last", done("s", TWO, rows("x", "2")))],
        published=[*scores(groups=0.5, last=1.0), {"question_id": "0", "steps_score": 1.0}],
    )
    [difference] = found.differences
    assert (difference.question_id, difference.published, difference.here) == ("groups", 0.5, 1.0)
    assert difference.why == "Equal with steps.scoring: all_groups."
    assert found.verdict.startswith("No setting gives all that graphrag-eval published; the defaults give the most")


def test_difference_without_a_setting_names_the_step() -> None:
    published = [{"question_id": "groups", "steps_score": 0.25, "matches": [["s1"], [None]]}]
    [difference] = migrate(dataset(GROUPS), [LAST_ALONE], published=published).differences
    assert "Reference step 1.1 (sparql_query): no step fulfils it here, s1 in graphrag-eval." in difference.why


def test_figure_of_other_responses_is_said_to_be() -> None:
    published = [{"question_id": "groups", "steps_score": 1.0, "total_tokens": 7}]
    found = migrate(dataset(GROUPS), [LAST_ALONE], published=published)
    [difference] = found.differences
    assert difference.key == "total_tokens"
    assert "may not be the responses" in difference.why
    assert "but 1 other value differs" in found.verdict


def test_published_question_without_a_response_is_a_difference() -> None:
    found = migrate(dataset(GROUPS, TIME), [LAST_ALONE], published=scores(groups=1.0, time=1.0))
    [difference] = found.differences
    assert difference.question_id == "time"
    assert difference.here is None
    assert any("1 question without a response is left out" in note for note in found.notes)


def test_judged_metrics_are_not_compared_and_named() -> None:
    published = [{"question_id": "groups", "steps_score": 1.0, "answer_f1": 0.5, "politeness": 3}]
    config = {
        "llm": {"generation": {"provider": "openai", "model": "m"}},
        "custom_evaluations": [
            {"name": "polite", "inputs": ["actual_answer"], "instructions": "Judge.", "outputs": {"politeness": "0-5"}}
        ],
    }
    found = migrate(dataset(GROUPS), [LAST_ALONE], config=config, published=published)
    assert found.differences == ()
    assert any("answer_f1 and politeness" in note or "answer_f1, politeness" in note for note in found.notes)


def test_without_published_figures_the_settings_are_those_of_graphrag_eval_6() -> None:
    found = migrate(dataset(GROUPS, FAILED), [LAST_ALONE, FAILURE])
    assert found.settings == {"steps": {"scoring": "all_groups"}, "aggregates": {"errors": "include"}}
    assert found.verdict.startswith("Nothing published to compare with")


def test_written_file_is_a_config_that_gives_the_figures(tmp_path: Path) -> None:
    (tmp_path / "qa.yaml").write_text(yaml.safe_dump(dataset(GROUPS)))
    (tmp_path / "responses.jsonl").write_text(json.dumps(LAST_ALONE) + "\n")
    found = migrate(
        tmp_path / "qa.yaml",
        tmp_path / "responses.jsonl",
        published=scores(groups=0.5),
        output_dir=tmp_path / "moved",
    )
    [path] = found.files
    config = load_config(path)
    assert config.run == {"dataset": "../qa.yaml", "output": "runs"}
    [result] = run_evaluation(load_dataset(tmp_path / "qa.yaml"), load_responses(tmp_path / "responses.jsonl"), config)
    assert result["steps_score"] == 0.5


def test_files_are_not_replaced_unasked(tmp_path: Path) -> None:
    for overwrite, is_refused in ((False, False), (False, True), (True, False)):
        if is_refused:
            with pytest.raises(RunFolderError, match="exists already"):
                migrate(dataset(GROUPS), [LAST_ALONE], output_dir=tmp_path, overwrite=overwrite)
        else:
            migrate(dataset(GROUPS), [LAST_ALONE], output_dir=tmp_path, overwrite=overwrite)


@pytest.mark.parametrize(
    ("published", "error", "said"),
    [
        ({"scores": 1}, ComparisonError, "neither results nor aggregates"),
        ([[]], ComparisonError, "neither results nor aggregates"),
        (scores(other=1.0), NothingToCompareError, "none of the 1 published question"),
        ([{"question_id": "groups", "steps_score": "high"}], ComparisonError, "'high' is no number"),
    ],
)
def test_what_is_not_of_graphrag_eval_is_refused(published: Any, error: type[GraphRAGEvalError], said: str) -> None:
    with pytest.raises(error, match=said):
        migrate(dataset(GROUPS), [LAST_ALONE], published=published)


@pytest.mark.parametrize(
    ("run", "settings", "questions"),
    [("substations", {}, 190), ("timeseries", {"steps": {"scoring": "all_groups"}}, 60)],
)
def test_recorded_runs_give_all_their_published_figures(
    conformance_dir: Path, run: str, settings: dict[str, Any], questions: int
) -> None:
    folder = conformance_dir / "real_runs" / run
    found = migrate(
        folder / "reference.yaml",
        folder / "responses.jsonl",
        published=[folder / "expected_scores.json", folder / "expected_summary.yaml"],
    )
    assert found.settings == settings
    assert found.differences == ()
    assert found.chosen.equal_scores == questions
    assert found.chosen.equal_figures == found.chosen.figures > 100


def test_old_config_is_checked_before_anything_is_scored(tmp_path: Path) -> None:
    path = tmp_path / "old.yaml"
    path.write_text("llm:\n  generation:\n    provider: openai\n    model: m\n    temperature: 5\n")
    with pytest.raises(ConfigError, match=r"old.yaml, line 5, key llm.generation.temperature: 5 is not allowed here"):
        migrate(dataset(GROUPS), [LAST_ALONE], config=path)


def test_folder_that_cannot_be_made_is_one_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(RunFolderError):
        migrate(dataset(GROUPS), [LAST_ALONE], output_dir=tmp_path / "file" / "moved")
