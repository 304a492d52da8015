"""The gates of ``run`` and ``score``: those of options, and those of the config."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

Command = Callable[..., int]
Output = pytest.CaptureFixture[str]

RUN = ["run", "qa.yaml", "-a", "agent.py:sometimes", "-o", "run", "-q", "--no-report"]
SCORE = ["score", "qa.yaml", "responses.jsonl", "-o", "run", "--no-report"]
BOTH = pytest.mark.parametrize("command", [RUN, SCORE])
GATES = """\
gates:
- {metric: steps_score, under: 0.9}
- {metric: elapsed_sec.p95, over: 30}
- {metric: steps_score, under: 0, template: where}
- {metric: steps_score, max_drop: 0.05, template: who}
- {metric: total_tokens, over: "+10%"}
"""
ASKING = """
async def sometimes(question):
    open("asked", "a").write(question)
    return "yes"
"""


@BOTH
@pytest.mark.parametrize(
    ("gate", "complaint"),
    [
        (["--fail-under", "step_score=0.9"], "unknown metric step_score. Did you mean steps_score?"),
        (["--fail-under", "were/steps_score=0.9"], "the dataset has no template were. Did you mean where?"),
        (["--fail-under", "answer_f1=0.9"], "the config has no llm section"),
        (["--fail-over", "elapsed_sec.p59=3"], "unknown statistic p59 of elapsed_sec. Did you mean p95?"),
        (["--fail-over", "steps_score=0.9"], "Require a least mean: --fail-under steps_score=0.9."),
        (["--fail-under", "elapsed_sec=3"], "Bound it from above: --fail-over elapsed_sec=3."),
        (["--fail-over", "total_tokens=+10%"], "one run has no baseline. Compare two runs: compare RUN_A RUN_B"),
        (["--fail-over", "total_tokens"], "is not a value of --fail-over. Write --fail-over elapsed_sec.p95=30,"),
    ],
)
def test_wrong_name_is_told_before_anything_is_asked(
    files: Path, exit_code: Command, capsys: Output, command: list[str], gate: list[str], complaint: str
) -> None:
    Path("agent.py").write_text(ASKING)
    assert exit_code(*command, *gate) == 2
    assert complaint in capsys.readouterr().err
    assert not Path("asked").exists()
    assert not Path("run").exists()


def test_wrong_name_is_told_in_a_dry_run_and_where_a_run_is_scored_again(
    files: Path, exit_code: Command, capsys: Output
) -> None:
    assert exit_code(*RUN, "--dry-run", "--fail-under", "step_score=0.9") == 2
    assert exit_code(*SCORE) == 0
    before = Path("run/run.json").read_bytes()
    assert exit_code("score", "run", "--no-report", "--fail-under", "were/steps_score=0.9") == 2
    errors = capsys.readouterr().err
    assert "Did you mean steps_score?" in errors
    assert "Did you mean where?" in errors
    assert Path("run/run.json").read_bytes() == before


@BOTH
def test_wrong_name_in_the_config_is_told_with_its_line(
    files: Path, exit_code: Command, capsys: Output, command: list[str]
) -> None:
    Path("config.yaml").write_text(GATES + "- {metric: step_score, max_drop: 0.1}\n")
    assert exit_code(*command, "-c", "config.yaml") == 2
    complaint = "config.yaml, line 7, key gates.5.metric: unknown metric step_score. Did you mean steps_score?"
    assert complaint in capsys.readouterr().err
    assert not Path("run").exists()


def test_gates_of_the_config_are_checked_beside_those_of_options(
    files: Path, exit_code: Command, capsys: Output
) -> None:
    Path("config.yaml").write_text(GATES)
    assert exit_code(*RUN, "-c", "config.yaml", "--fail-over", "elapsed_sec.sum=60") == 1
    output = capsys.readouterr()
    assert "Gate failed: steps_score 0.000 < 0.9 (2 questions without it)." in output.err
    gates = [line for line in output.out.splitlines() if line.startswith("Gate passed: ")]
    assert [gate.split()[2] for gate in gates] == ["elapsed_sec.p95", "where/steps_score", "elapsed_sec.sum"]
    assert "2 gates of the config need a baseline: compare RUN_A run" in output.out


def test_gates_of_a_run_stand_in_its_record_and_change_nothing_else(
    files: Path, exit_code: Command, capsys: Output
) -> None:
    assert exit_code(*RUN) == 0
    Path("config.yaml").write_text(GATES.replace("0.9", "0"))
    assert exit_code(*RUN, "-c", "config.yaml") == 0  # the same run goes on
    gates = json.loads(Path("run/run.json").read_text())["config"]["gates"]
    assert [gate["metric"] for gate in gates] == [
        "steps_score",
        "elapsed_sec.p95",
        *["steps_score"] * 2,
        "total_tokens",
    ]
    capsys.readouterr()
    assert exit_code("score", "run", "--no-report") == 0
    assert "Gate passed: where/steps_score 0.000 ≥ 0." in capsys.readouterr().out


def test_template_that_is_not_selected_cannot_be_checked(files: Path, exit_code: Command, capsys: Output) -> None:
    gate = ["--fail-under", "where/steps_score=0"]
    assert exit_code(*RUN, *gate, "--template", "who", "--fail-over", "elapsed_sec=60") == 3
    output = capsys.readouterr()
    assert "where/steps_score: the run has no question of the template where." in output.err
    assert "Gate passed: elapsed_sec " in output.out
    assert exit_code(*RUN, *gate, "--template", "who", "--fail-over", "elapsed_sec=0") == 1


def test_metric_that_the_agents_module_registers_can_be_bounded(
    files: Path, exit_code: Command, capsys: Output
) -> None:
    Path("registering_agent.py").write_text("""
from graphrag_eval_lc import register_metric

@register_metric(key="detour", unit="km", lower_is_better=True)
def detour(question, response):
    return 12.0

def agent(question):
    return "yes"
""")
    command = ["run", "qa.yaml", "-a", "registering_agent.py:agent", "-o", "run", "-q", "--no-report"]
    assert exit_code(*command, "--fail-over", "detour.max=10") == 1
    assert "Gate failed: detour.max 12.0 km > 10." in capsys.readouterr().err
    assert exit_code(*command, "--fail-under", "detour=10") == 2
    assert "Bound it from above: --fail-over detour=10." in capsys.readouterr().err


@pytest.mark.full
def test_name_that_only_an_evaluator_can_give_is_allowed_and_told(
    files: Path, exit_code: Command, capsys: Output
) -> None:
    Path("checks.py").write_text("def words(question, response):\n    return {'polite': 1.0}\n")
    command = [*RUN, "--evaluator", "checks.py:words"]
    assert exit_code(*command, "--fail-under", "polite=0.6") == 0
    assert "no metric polite is known beforehand, so words must give it." in capsys.readouterr().err
    assert exit_code(*command, "--fail-under", "step_score=1") == 1
    errors = capsys.readouterr().err
    assert "so words must give it. Did you mean steps_score?" in errors
    assert "Gate failed: step_score was not measured (≥ 1 is required)." in errors
