"""A third-party package with a metric, a step kind and an evaluator, installed by pip or passed with --plugin."""

import contextlib
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from support.scored_runs import record_in

SOURCE = Path(__file__).parents[1] / "plugin_package"
MAIN = "from graphrag_eval_lc.cli import main; main()"
DATASET = """\
- template_id: counts
  questions:
  - {id: q1, question_text: How many lines?, form_sec: -1.0, reference_steps: [[{name: count_rows, output: "7"}]]}
  - {id: q2, question_text: How many fail?, form_sec: -2.0, reference_steps: [[{name: count_rows, output: "7"}]]}
"""
AGENT = """
from langchain_core.messages import AIMessage, ToolMessage
from langchain_core.tools import tool
from langgraph.graph import END, START, MessagesState, StateGraph


@tool
def count_rows() -> str:
    "Count the rows."
    return "7 rows"


def ask(state):
    if "fail" in state["messages"][-1].content:
        raise RuntimeError("away")
    return {"messages": [AIMessage("", tool_calls=[{"name": "count_rows", "args": {}, "id": "c"}])]}


def call(state):
    return {"messages": [count_rows.invoke(state["messages"][-1].tool_calls[0])]}


def answer(state):
    return {"messages": [AIMessage("7 please")]}


builder = StateGraph(MessagesState)
for name, node, before in (("ask", ask, START), ("call", call, "ask"), ("answer", answer, "call")):
    builder.add_node(name, node)
    builder.add_edge(before, name)
builder.add_edge("answer", END)
graph = builder.compile()
"""
RUN = ("run", "qa.yaml", "-a", "agent.py:graph", "-q", "-o")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder into which pip installed the package."""
    target = tmp_path_factory.mktemp("site")
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    flags = ["--no-index", "--no-deps", "--no-build-isolation", "--target", str(target)]
    subprocess.run([*pip, *flags, str(SOURCE)], check=True)
    return target


@pytest.fixture(scope="module")
def installed_run(site: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of a run with the installed package."""
    folder = tmp_path_factory.mktemp("installed")
    Path(folder, "qa.yaml").write_text(DATASET)
    Path(folder, "agent.py").write_text(AGENT)
    with contextlib.chdir(folder):
        done(*RUN, "runs/a", path=site)
    return folder / "runs" / "a"


@pytest.fixture(autouse=True)
def own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("qa.yaml").write_text(DATASET)
    Path("agent.py").write_text(AGENT)


def command(*arguments: str, path: Path | None = None, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run the command line in a separate process, with or without a folder of installed packages."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"} | variables
    if path is not None:
        environment["PYTHONPATH"] = str(path)
    line = [sys.executable, "-c", MAIN, *arguments]
    return subprocess.run(line, env=environment, capture_output=True, text=True, check=False)


def done(*arguments: str, path: Path | None = None) -> str:
    outcome = command(*arguments, path=path)
    assert outcome.returncode == 0, outcome.stderr
    return outcome.stdout


def results_in(folder: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in Path(folder, "results.jsonl").read_text().splitlines()]


def check_run(folder: str) -> None:
    """Check that the run uses the package: its metric, kind and evaluator are found, used, aggregated and shown."""
    answered, failed = results_in(folder)
    assert answered["steps_score"] == 1.0
    assert answered["steps_diagnosis"][0][0]["reason"] == "the score of match_counts is 1"
    assert answered["custom_metrics"] == ["extra_wait", "is_polite", "words"]
    assert answered["extra_wait"] >= 1.0
    assert failed["status"] == "error"
    micro = yaml.safe_load(Path(folder, "aggregates.yaml").read_text())["micro"]
    assert micro["extra_wait"]["mean"] == answered["extra_wait"]
    assert micro["is_polite"]["mean"] == 1.0
    assert "extra_wait" in Path(folder, "report.html").read_text()


@pytest.mark.full
def test_installed_plugin_is_found_and_can_be_disabled(site: Path) -> None:
    shown = done("doctor", "--plugins", path=site)
    assert "entry point acme" in shown
    assert "acme-agent-checks 1.2.0" in shown
    assert "seconds longer than the old form" in shown
    without = command("doctor", "--plugins", path=site, GRAPHRAG_EVAL_LC_NO_PLUGINS="1")
    assert without.stdout.startswith("No plugins found.")


@pytest.mark.full
def test_installed_plugin_is_used_aggregated_compared_shown_and_recorded(site: Path, installed_run: Path) -> None:
    done("validate", "qa.yaml", path=site)
    shutil.copytree(installed_run, "runs/a")
    shutil.copytree(installed_run, "runs/b")
    check_run("runs/a")
    (plugin,) = record_in("runs/a")["plugins"]
    assert len(plugin.pop("sha256")) == 64
    assert plugin == {
        "name": "acme_checks",
        "via": "entry point",
        "entry_point": "acme",
        "distribution": "acme-agent-checks",
        "version": "1.2.0",
        "gives": ["metric extra_wait", "evaluator manners", "step kind count_rows"],
    }
    assert "extra_wait" in done("compare", "runs/a", "runs/b", path=site)
    before = results_in("runs/a")
    again = command("score", "runs/a", path=site)
    assert (again.returncode, again.stderr) == (0, "")
    assert results_in("runs/a") == before


@pytest.mark.full
def test_run_with_an_installed_plugin_is_rejected_without_it(installed_run: Path) -> None:
    shutil.copytree(installed_run, "runs/a")
    refused = command("score", "runs/a")
    assert refused.returncode == 2
    assert "what scored the run is missing now" in refused.stderr
    assert "Add --plugin acme_checks (" in refused.stderr
    assert command(*RUN, "runs/a").returncode == 2
    done("score", "runs/a", "--drop-missing")
    assert "extra_wait" not in results_in("runs/a")[0]


@pytest.mark.full
def test_another_version_is_reported(site: Path, installed_run: Path) -> None:
    shutil.copytree(installed_run, "runs/a")
    record = dict(record_in("runs/a"))
    record["plugins"][0]["version"] = "1.1.0"
    Path("runs/a/run.json").write_text(json.dumps(record))
    now, before = (
        f"acme_checks (acme-agent-checks {version} sha256 {record['plugins'][0]['sha256'][:12]})"
        for version in ("1.2.0", "1.1.0")
    )
    errors = command("score", "runs/a", path=site).stderr
    assert f"scored with the plugin {now} now, and with {before} before" in errors


@pytest.mark.full
def test_plugin_option_works_without_installation() -> None:
    Path("config.yaml").write_text("plugins: [acme_checks]")
    given = ("--plugin", "acme_checks")
    for folder, via, options in (("runs/b", "config", ("-c", "config.yaml")), ("runs/a", "--plugin", given)):
        done(*RUN, folder, *options, path=SOURCE)
        check_run(folder)
        (plugin,) = record_in(folder)["plugins"]
        assert (plugin["name"], plugin["via"]) == ("acme_checks", via)
        assert len(plugin["sha256"]) == 64
    done("validate", "qa.yaml", *given, path=SOURCE)
    Path("wrong.yaml").write_text(DATASET.replace('"7"', "seven"))
    wrong = command("validate", "wrong.yaml", *given, path=SOURCE)
    assert wrong.returncode == 1
    assert "'seven' begins with no number" in wrong.stdout
    done("validate", "wrong.yaml", path=SOURCE)
    done("dataset", "draft", "runs/a", "-o", "draft.yaml", *given, path=SOURCE)
    (drafted,) = yaml.safe_load(Path("draft.yaml").read_text())[0]["questions"]
    assert drafted["reference_steps"][0][0]["output"] == "7 rows"
    before = results_in("runs/a")
    refused = command("score", "runs/a", path=SOURCE)
    assert refused.returncode == 2
    assert "Add --plugin acme_checks (" in refused.stderr
    done("score", "runs/a", "--plugin", "acme_checks", path=SOURCE)
    assert results_in("runs/a") == before


@pytest.mark.full
def test_broken_installed_plugin_is_one_error(tmp_path: Path) -> None:
    info = tmp_path / "site" / "acme_checks-2.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: acme-checks\nVersion: 2.0\n")
    (info / "entry_points.txt").write_text("[graphrag_eval_lc]\nacme = acme_of_nobody.metrics\n")
    outcome = command("validate", "qa.yaml", path=tmp_path / "site")
    assert outcome.returncode == 2
    assert outcome.stderr == (
        "Error: the plugin acme (acme_of_nobody.metrics) of the package acme-checks cannot be loaded, as "
        "ModuleNotFoundError: No module named 'acme_of_nobody'. Fix or uninstall the package, or set "
        "GRAPHRAG_EVAL_LC_NO_PLUGINS=1 to do without the plugins of installed packages.\n"
    )
