"""The list on a comparison's page: its questions, their order, and what became of each."""

from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest
from support.page_data import compared_rows, comparison_html, page_data

from graphrag_eval_lc.compare import RunComparison, compare_runs
from graphrag_eval_lc.json_values import json_text
from graphrag_eval_lc.report.comparison_page import TURNS, write_comparison

HOSTILE = "</script><script>alert(1)</script> \u202e#?&%"


def result(name: str, score: float | None, **more: Any) -> dict[str, Any]:
    template = more.pop("template", "t")
    scores = {} if score is None else {"steps_score": score}
    return {
        "question_id": name,
        "template_id": template,
        "question_text": f"What is {name}?",
        "actual_answer": f"It is {name}.",
        "status": "success",
        "reference_steps": [],
        "actual_steps": [{"name": "search", "args": {"of": name}, "id": "1", "status": "success", "output": "found"}],
        "total_tokens": 100,
        **scores,
        **more,
    }


def run(**scores: float | None) -> list[dict[str, Any]]:
    return [result(name, score) for name, score in scores.items()]


def changes_in(html: str, letter: str = "B") -> dict[str, str]:
    return {row["k"]: TURNS[row["w"]] for row in compared_rows(html, letter)}


def test_each_question_has_a_row_with_its_change() -> None:
    a = run(lost=1.0, fixed=0.0, down=0.5, up=0.25, same=0.5, half=0.5, gone=1.0)
    b = run(lost=0.5, fixed=1.0, down=0.25, up=0.5, same=0.5, half=None, new=1.0)
    html = comparison_html(compare_runs(a, b))
    assert changes_in(html) == {
        "lost": "broken",
        "fixed": "fixed",
        "down": "worse",
        "up": "better",
        "same": "same",
        "half": "not comparable",
        "gone": "not comparable",
        "new": "not comparable",
    }
    notes = {row["k"]: row["n"] for row in compared_rows(html) if "n" in row}
    assert notes == {"half": "not measured in both", "gone": "only in A", "new": "only in B"}
    rows = {row["k"]: row for row in compared_rows(html)}
    assert (rows["lost"]["a"], rows["lost"]["b"]) == (1.0, 0.5)
    assert "a" not in rows["gone"]


def test_flips_come_first_and_unchanged_questions_last() -> None:
    a = run(same=1.0, small=0.5, lost=1.0, fixed=0.0, large=0.75, gone=1.0)
    b = run(same=1.0, small=0.25, lost=0.0, fixed=1.0, large=0.0)
    html = comparison_html(compare_runs(a, b))
    assert [row["k"] for row in compared_rows(html)] == ["lost", "fixed", "large", "small", "gone", "same"]


def test_only_flips_have_details_with_both_answers_and_steps() -> None:
    html = comparison_html(compare_runs(run(lost=1.0, same=1.0), run(lost=0.0, same=1.0)))
    lost, same = compared_rows(html)
    assert "detail" not in same
    assert [side["letter"] for side in lost["detail"]["sides"]] == ["A", "B"]
    assert [side["answer"] for side in lost["detail"]["sides"]] == ["It is lost."] * 2
    (step,) = lost["detail"]["steps"]
    assert step["same"]
    assert (step["a"]["name"], step["a"]["args"], step["b"]["output"]) == ("search", "of: lost", "found")


def test_static_page_counts_agree_with_the_list() -> None:
    html = comparison_html(compare_runs(run(a=1.0, b=0.5, c=0.5), run(a=0.0, b=0.5, d=1.0)))
    for text in ("1 broken", "1 same", "2 not comparable"):
        assert f"</span>{text}</span>" in html


def test_runs_share_texts_but_have_separate_details() -> None:
    html = comparison_html(compare_runs(run(q=1.0, r=0.0), run(q=0.0, r=0.0), run(q=0.5, r=1.0)))
    assert len(page_data(html)["index"]["questions"]) == 2
    assert changes_in(html, "B") == {"q": "broken", "r": "same"}
    assert changes_in(html, "C") == {"q": "broken", "r": "fixed"}
    for letter in "BC":
        letters = [side["letter"] for side in compared_rows(html, letter)[0]["detail"]["sides"]]
        assert letters == ["A", letter]


def test_run_without_the_main_metric_has_no_rows() -> None:
    bare = [{key: value for key, value in each.items() if key != "steps_score"} for each in run(q=1.0)]
    html = comparison_html(compare_runs(run(q=1.0), run(q=0.0), bare))
    assert list(page_data(html)["index"]["pairs"]) == ["B"]
    assert [each["letter"] for each in page_data(html)["lists"]["runs"]] == ["B"]
    assert 'id="templates-B"' in html
    assert 'id="templates-C"' not in html


def test_for_spent_metrics_lower_is_better_and_nothing_is_right_or_wrong() -> None:
    tokens = [(100, 90), (100, 300), (100, 100), (0, 10)]
    runs = [[result(f"q{n}", 1.0, total_tokens=pair[side]) for n, pair in enumerate(tokens)] for side in (0, 1)]
    html = comparison_html(compare_runs(*runs, metrics=["total_tokens"]))
    assert list(changes_in(html).items()) == [("q1", "worse"), ("q3", "worse"), ("q0", "better"), ("q2", "same")]
    assert page_data(html)["lists"]["unit"] == "tokens"
    assert ">Broken<" not in html[html.index('id="templates-B"') :]


def test_compared_questions_are_listed_without_the_results() -> None:
    comparison = compare_runs(run(q=1.0, r=1.0), run(q=0.0, r=1.0))
    html = comparison_html(RunComparison(comparison.baseline, comparison.pairs, comparison.metric, ()))
    assert changes_in(html) == {"q": "broken", "r": "same"}
    assert [row["q"] for row in compared_rows(html)] == ["What is q?", ""]


def test_ids_that_look_the_same_have_separate_rows() -> None:
    names = ["x\u202e", "x⟨U+202E⟩"]
    runs = [[result(name, score) for name in names] for score in (1.0, 0.0)]
    keys = [row["k"] for row in compared_rows(comparison_html(compare_runs(*runs)))]
    assert keys == ["x⟨U+202E⟩", "x⟨U+202E⟩ (2)"]


# --- links to reports ------------------------------------------------------------------------------------------------


def folder_of(folder: Path, results: list[dict[str, Any]], *, has_report: bool = True) -> Path:
    folder.mkdir(parents=True)
    (folder / "results.jsonl").write_text("".join(json_text(each) + "\n" for each in results), encoding="utf-8")
    if has_report:
        (folder / "report.html").write_text("<!doctype html>", encoding="utf-8")
    return folder


@pytest.mark.full
@pytest.mark.parametrize("name", ["b", "run:1", "javascript:alert(1)", 'a "b" <c> #?&%20', "ø ü"])
def test_page_links_to_existing_reports(name: str, tmp_path: Path) -> None:
    a = folder_of(tmp_path / "runs" / "a", run(q=1.0), has_report=False)
    b = folder_of(tmp_path / name, run(q=0.0))
    for page in (tmp_path / "page.html", tmp_path / "deep" / "down" / "page.html", b / "page.html"):
        page.parent.mkdir(parents=True, exist_ok=True)
        html = write_comparison(compare_runs(a, b), page).read_text(encoding="utf-8")
        reports = page_data(html)["lists"]["reports"]
        assert list(reports) == ["B"]
        assert ":" not in reports["B"]
        assert (page.parent / unquote(reports["B"])).resolve() == (b / "report.html").resolve()
        assert html.count(f'<a href="{reports["B"]}">Report B</a>') == 1
        assert ">Report A<" not in html


def test_links_do_not_depend_on_the_current_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder_of(tmp_path / "runs" / "a", run(q=1.0))
    folder_of(tmp_path / "runs" / "b", run(q=0.0))
    (tmp_path / "out").mkdir()
    monkeypatch.chdir(tmp_path / "runs")
    html = write_comparison(compare_runs("a", "b"), "../out/page.html").read_text(encoding="utf-8")
    assert page_data(html)["lists"]["reports"] == {"A": "../runs/a/report.html", "B": "../runs/b/report.html"}


def test_question_missing_from_a_run_is_not_linked() -> None:
    html = comparison_html(compare_runs(run(q=1.0, gone=1.0), run(q=0.0, new=1.0)))
    links = {row["k"]: row.get("l") for row in compared_rows(html)}
    assert links == {"q": None, "gone": {"B": None}, "new": {"A": None}}


def test_flip_links_to_the_repeat_shown() -> None:
    a = [result("q", 1.0, repeat=repeat) for repeat in (1, 2, 3)]
    b = [result("q", score, repeat=repeat) for repeat, score in ((1, 1.0), (2, 0.5), (3, 0.0))]
    (row,) = compared_rows(comparison_html(compare_runs(a, b)))
    assert row["l"] == {"B": "q #3"}
    assert row["detail"]["sides"][1]["repeat"] == 3


def test_hostile_ids_and_texts_are_escaped() -> None:
    def runs(text: str) -> list[list[dict[str, Any]]]:
        each = {"template": text, "question_text": text, "actual_answer": text, "reference_answer": text}
        return [[result(f"{text}{n}", score, **each) for n in range(2)] for score in (1.0, 0.0)]

    plain, hostile = (comparison_html(compare_runs(*runs(text))) for text in ("plain", HOSTILE))
    assert hostile.count("<script") == plain.count("<script")
    assert "\u202e" not in hostile
    assert "\u202e" not in json_text([page_data(hostile), compared_rows(hostile)])
    assert compared_rows(hostile)[0]["q"].startswith("</script><script>alert(1)</script> ⟨U+202E⟩")
