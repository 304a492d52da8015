"""The workflows in docs/how-to/ci.md: their YAML is valid, and their commands run as written."""

import re
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from support.junit_schema import checked_junit

from graphrag_eval_lc.cli import main
from graphrag_eval_lc.config import load_config

TEXT = (Path(__file__).parents[2] / "docs" / "how-to" / "ci.md").read_text(encoding="utf-8")
BLOCKS = [yaml.safe_load(block) for block in re.findall(r"^```yaml\n(.*?)^```", TEXT, flags=re.DOTALL | re.MULTILINE)]
GITHUB, GITLAB, CONFIG = BLOCKS
DATASET = """\
- template_id: where
  questions:
  - {id: q1, question_text: "Where?", reference_steps: [[{name: lookup, output: x}]]}
  - {id: q2, question_text: "Who?", reference_steps: [[{name: lookup, output: x}]]}
"""
AGENT = """
from langchain_core.tools import tool

@tool
def lookup(name: str) -> str:
    "Look something up."
    return "x"

def agent(question):
    lookup.invoke({"name": "x"})
    return "yes"
"""


def commands(steps: list[str]) -> list[list[str]]:
    """Return this package's commands in shell scripts, as argument lists."""
    lines = (line for step in steps for line in step.splitlines())
    return [shlex.split(line.split(" || ")[0])[1:] for line in lines if line.startswith("graphrag-eval-lc")]


def github_commands() -> list[list[str]]:
    return commands([step["run"] for step in GITHUB["jobs"]["evaluate"]["steps"] if "run" in step])


@pytest.fixture
def exit_code(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[list[str]], int]:
    """Return a function that runs a command in a folder like the workflows' and returns its exit code."""
    monkeypatch.chdir(tmp_path)
    gates = [{"metric": "steps_score", "under": 0.9}]
    project = {"run": {"agent": "agent.py:agent", "dataset": "qa.yaml"}, "gates": gates, **CONFIG}
    for name, text in (("qa.yaml", DATASET), ("agent.py", AGENT), ("graphrag_eval.yaml", yaml.safe_dump(project))):
        Path(name).write_text(text.replace("answer_f1", "steps_score"))

    def command(arguments: list[str]) -> int:
        with pytest.raises(SystemExit) as caught:
            main(arguments)
        return int(caught.value.code or 0)

    return command


def test_config_is_valid() -> None:
    config = load_config(CONFIG, has_llm=True, has_embeddings=True)
    assert (config.repeats.metric, config.repeats.threshold) == ("answer_f1", 0.5)


@pytest.mark.full
@pytest.mark.parametrize(
    ("given", "baseline"),
    [(github_commands(), "runs/main"), (commands(GITLAB["evaluate"]["script"]), "baseline/runs/branch")],
    ids=["github", "gitlab"],
)
def test_workflow_commands_return_the_documented_exit_codes(
    exit_code: Callable[[list[str]], int], given: list[list[str]], baseline: str
) -> None:
    run, compare = given
    assert (run[0], compare[0]) == ("run", "compare")
    assert {"--junit", "--summary", "--output"} <= set(run)
    assert compare[compare.index("--baseline") + 1] == baseline
    assert exit_code(run) == 0
    branch = Path(run[run.index("--output") + 1])
    Path(baseline).parent.mkdir(parents=True, exist_ok=True)
    branch.rename(baseline)
    assert exit_code(run) == 0
    assert len(list(checked_junit(run[run.index("--junit") + 1]).iter("testcase"))) == 3
    assert exit_code(compare) == 0
    for option in {"--summary", "--html"} & set(compare):
        assert Path(compare[compare.index(option) + 1]).is_file()


def test_workflow_keeps_the_files_it_reads_later() -> None:
    steps = GITHUB["jobs"]["evaluate"]["steps"]
    kept = next(step["with"] for step in steps if step.get("uses", "").startswith("actions/upload-artifact"))
    fetched = next(step["run"] for step in steps if "gh run download" in step.get("run", ""))
    assert f"--name {kept['name']} --dir runs/main" in fetched
    assert kept["path"] == "runs/branch"
    job: dict[str, Any] = GITLAB["evaluate"]
    assert job["artifacts"]["reports"]["junit"] in commands(job["script"])[0]
    assert "runs/branch" in job["artifacts"]["paths"]
    assert "download?job=evaluate" in "".join(job["script"])
