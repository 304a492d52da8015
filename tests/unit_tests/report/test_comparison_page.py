from html.parser import HTMLParser
from pathlib import Path
from typing import Any

from support.page_data import compared_rows, comparison_html

from graphrag_eval_lc.compare import compare_runs
from graphrag_eval_lc.report.comparison_page import write_comparison

HOSTILE = "</script><script>alert(1)</script><img src=x onerror=alert(1)>\u202e"


def result(number: int, score: float, text: str = "text") -> dict[str, Any]:
    step = {"name": text, "args": {"query": text}, "id": f"call_{number}", "status": "success", "output": text}
    return {
        "question_id": f"{text}-{number}",
        "template_id": f"{text}-{number % 2}",
        "question_text": text,
        "reference_answer": text,
        "actual_answer": text,
        "status": "success",
        "reference_steps": [],
        "actual_steps": [step],
        "steps_score": score,
        "total_tokens": 100 + number,
    }


def run(scores: list[float], text: str = "text") -> list[dict[str, Any]]:
    return [result(number, score, text) for number, score in enumerate(scores)]


def page(text: str = "text") -> str:
    runs = run([1.0, 1.0, 0.0, 0.5], text), run([1.0, 0.0, 1.0, 0.5], text)
    return comparison_html(compare_runs(*runs, labels=[f"old {text}", f"new {text}"]))


class Elements(HTMLParser):
    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, list[str]]] = []
        self.feed(html)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag != "wbr":  # without <wbr>, whose number depends on the name
            self.tags.append((tag, sorted(name for name, _ in attrs)))


def test_verdict_comes_first_and_its_certainty_last() -> None:
    html = page()
    headline = html.index("B is as good in the mean: steps_score 0.625 → 0.625; 1 broken, 1 fixed.")
    assert html.index('<p class="muted">A: <bdi>') < headline
    sure = html.index('id="certainty-heading"')
    assert headline < html.index('id="flips-B"') < html.index("<table") < sure
    assert sure < html.index("Cannot tell whether B differs in steps_score")


def test_with_few_templates_one_sentence_replaces_the_verdicts() -> None:
    html = page()
    assert html.count("With 2 templates no test can distinguish a difference from chance") == 1
    assert '<th scope="col">Verdict</th>' not in html


def test_gates_are_shown_with_their_reasons() -> None:
    comparison = compare_runs(run([1.0, 1.0]), run([1.0, 0.98]), run([1.0, 0.5]))
    html = comparison_html(comparison, comparison.gate_results("--fail-on-regression"))
    assert "Passed: <bdi>B: steps_score 1.000 → 0.990, drop 0.010 ≤ 0.05 (the effect decided" in html
    assert "Failed: <bdi>C: steps_score 1.000 → 0.750, drop 0.250 &gt; 0.05 (the effect decided" in html
    assert "<h2>Gates</h2>" not in comparison_html(comparison)


def test_names_of_metrics_in_gates_are_text() -> None:
    runs = [[{**result, HOSTILE: score} for result in run([1.0, 1.0])] for score in (1.0, 0.0)]
    comparison = compare_runs(*runs, metrics=[HOSTILE])
    html = comparison_html(comparison, comparison.gate_results("--fail-on-regression"))
    assert "Failed: <bdi>B: &lt;/script&gt;" in html
    assert "<img src=x" not in html


def test_page_explains_p_values_and_intervals() -> None:
    html = page()
    assert "steps_score is the main metric, so its p-value is not adjusted. All other p-values are adjusted" in html
    assert "The interval of steps_score is at 95 %. Other intervals are wider, to match the adjusted p-values." in html
    assert "An interval contains 0 if, and only if, the difference is not significant." in html


def test_spent_metrics_have_no_flips() -> None:
    runs = run([1.0, 1.0]), run([1.0, 0.0])
    assert 'id="flips-B"' in comparison_html(compare_runs(*runs))
    html = comparison_html(compare_runs(*runs, metrics=["total_tokens"]))
    assert 'id="metrics-B"' in html
    assert "flips-B" not in html


def test_flips_are_listed_with_their_steps() -> None:
    html = page()
    assert "1 broken" in html
    assert "1 fixed" in html
    details = [row["detail"] for row in compared_rows(html) if "detail" in row]
    assert [[step.get("same") for step in detail["steps"]] for detail in details] == [[True], [True]]


def templates(html: str, letter: str = "B") -> str:
    section = html[html.index(f'<section id="templates-{letter}"') :]
    return section[: section.index("</section>")]


def test_template_differences_need_no_scripts_and_begin_with_the_largest_drop() -> None:
    section = templates(page())
    assert section.index("text-1") < section.index("text-0")
    row = section[section.index('data-value="text-1"') :]
    assert '<td class="number nowrap" data-value="0.75">0.750</td>' in row
    assert '<span aria-hidden="true">▼ </span>−0.500</td>' in row
    assert '<span class="bad"><span aria-hidden="true">✗ </span>1</span>' in row
    assert '<span class="good"><span aria-hidden="true">✓ </span>1</span>' in section[section.index("text-0") :]


def test_single_templates_are_not_called_significant() -> None:
    section = templates(page())
    assert "Single templates are not tested" in section
    assert "p = " not in section
    assert 'class="forest better"' not in section
    assert 'class="forest worse"' not in section


def test_only_the_templates_that_differ_most_are_shown() -> None:
    runs = [[{**result(n, 1.0), "template_id": f"t{n:03}"} for n in range(250)] for _ in range(2)]
    runs[1] = [{**each, "steps_score": 0.0} if n in (3, 249) else each for n, each in enumerate(runs[1])]
    section = templates(comparison_html(compare_runs(*runs)))
    assert section.count('<tr><th scope="row"') == 200
    assert section.index(">t003<") < section.index(">t249<") < section.index(">t000<")
    assert "Of 250 templates these differ most; the list of questions has all." in section


def test_templates_have_no_lost_questions_for_a_spent_main_metric() -> None:
    runs = run([1.0, 1.0]), run([1.0, 0.0])
    section = templates(comparison_html(compare_runs(*runs, metrics=["total_tokens"])))
    assert "Mean B" in section
    assert ">Broken<" not in section


def test_markup_in_texts_is_escaped() -> None:
    assert Elements(page(HOSTILE)).tags == Elements(page()).tags
    assert "⟨U+202E⟩" in page(HOSTILE)


def test_unchanged_metric_has_a_note() -> None:
    html = comparison_html(compare_runs(run([1.0, 0.0]), run([1.0, 0.0])))
    assert "is the same in A and B for each question" in html
    assert "None in" in html


def test_three_runs_have_one_section_each() -> None:
    html = comparison_html(compare_runs(run([1.0, 0.0]), run([0.0, 0.0]), run([1.0, 1.0])))
    assert 'id="metrics-B"' in html
    assert 'id="metrics-C"' in html


def test_file_is_utf8(tmp_path: Path) -> None:
    path = write_comparison(compare_runs(run([1.0]), run([0.0])), tmp_path / "out.html")
    assert path == tmp_path / "out.html"
    assert "→" in path.read_text(encoding="utf-8")


def test_difference_is_positioned_by_its_size() -> None:
    runs = run([0.0, 0.0, 0.0]), run([1.0, 1.0, 1.0])
    html = comparison_html(compare_runs(*runs))
    assert '<rect x="97.3"' in html
