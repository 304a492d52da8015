"""The list of results that displays itself."""

import copy
import json
import pickle
from pathlib import Path
from typing import Any

import pytest
import yaml
from matplotlib.figure import Figure

from graphrag_eval_lc import run_evaluation
from graphrag_eval_lc.errors import OptionError
from graphrag_eval_lc.tables import Results

DATASET: list[Any] = [
    {
        "template_id": "<t>",
        "questions": [
            {"id": "q1", "question_text": "?", "reference_steps": [[{"name": "add", "output": "2"}]]},
            {"id": "q2", "question_text": "?"},
        ],
    }
]
STEP: dict[str, Any] = {"name": "add", "args": {}, "id": "c1", "status": "success", "output": "2"}


@pytest.fixture
def results() -> Results:
    responses: Any = {"q1": {"actual_steps": [STEP], "total_tokens": 7}, "q2": {"error": "away"}}
    return run_evaluation(DATASET, responses)


def test_results_behave_like_a_list(results: Results) -> None:
    plain = list(results)
    assert isinstance(results, Results)
    assert results == plain
    assert type(results[:1]) is list
    assert json.loads(json.dumps(results)) == plain
    assert copy.deepcopy(results) == plain
    assert pickle.loads(pickle.dumps(results)) == plain


@pytest.mark.parametrize("dump", [yaml.safe_dump, yaml.dump])
def test_yaml_dumps_results_as_a_list(results: Results, dump: Any) -> None:
    assert yaml.safe_load(dump(results)) == list(results)
    assert dump(results) == dump(list(results))


def test_frame_is_of_questions_or_steps(results: Results) -> None:
    assert results.to_pandas()["question_id"].tolist() == ["q1", "q2"]
    assert results.to_pandas("steps")["name"].tolist() == ["add"]


def test_file_is_of_questions_or_steps(results: Results, tmp_path: Path) -> None:
    assert results.to_csv(tmp_path / "q.csv").read_text(encoding="utf-8").startswith("question_id,repeat,template_id")
    assert ",add,success," in results.to_csv(tmp_path / "s.csv", kind="steps").read_text(encoding="utf-8")


def test_other_kinds_are_rejected(results: Results) -> None:
    with pytest.raises(OptionError, match=r"unknown kind of frame 'answers'\. Give questions or steps"):
        results.to_pandas("answers")  # type: ignore[arg-type]


def test_table_shows_scores_of_answered_questions_and_failures(results: Results) -> None:
    html = results._repr_html_()
    assert 'answered</th><td style="text-align: left">1<' in html
    assert 'failed</th><td style="text-align: left">1<' in html
    assert 'mean steps_score</th><td style="text-align: left">1.000<' in html
    assert "steps_extra" not in html


def test_plot_shows_the_scores(results: Results) -> None:
    ax = Figure().subplots()
    assert results.plot_scores(ax=ax) is ax
    assert ax.get_title() == "steps_score by template"


@pytest.mark.full
def test_notebooks_store_a_line_and_a_table_instead_of_the_list(results: Results) -> None:
    formatter: Any = pytest.importorskip("IPython.core.formatters").DisplayFormatter()
    data, _ = formatter.format(Results(list(results) * 5000))
    assert data["text/plain"] == "<Results: 5,000 answered, 5,000 failed>"
    assert len(data["text/html"]) < 20_000
    assert repr(results) == repr(list(results))
