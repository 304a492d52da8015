import subprocess
import sys
from pathlib import Path

import pytest

import graphrag_eval_lc

HEAVY = ("langgraph", "langchain_core", "openai", "pandas", "pydantic", "yaml", "typer", "ragas", "pyoxigraph")


def modules_after(statement: str) -> set[str]:
    code = f"{statement}\nimport sys\nprint(*sorted(name.partition('.')[0] for name in sys.modules))"
    return set(subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split())


def test_import_of_the_package_is_lazy() -> None:
    assert modules_after("import graphrag_eval_lc").isdisjoint(HEAVY)


@pytest.mark.full
def test_scoring_loads_no_agent_framework() -> None:
    names = "run_evaluation, compute_aggregates, score_responses, score_run, BenchmarkRun"
    loaded = modules_after(f"from graphrag_eval_lc import {names}")
    assert loaded.isdisjoint({"langgraph", "langchain", "langchain_core", "openai", "ragas", "pandas"})


def test_every_public_name_exists() -> None:
    assert set(graphrag_eval_lc.__all__) <= set(dir(graphrag_eval_lc))
    assert [getattr(graphrag_eval_lc, name).__name__ for name in graphrag_eval_lc.__all__] == graphrag_eval_lc.__all__


def test_unknown_name_raises_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'run_evaluations'"):
        graphrag_eval_lc.run_evaluations  # noqa: B018


# Each statement runs in its own interpreter, as for a user without judges.
WITHOUT_JUDGES = {
    "run_evaluation": 'run_evaluation(DATASET, {"q": {"actual_answer": "2"}})',
    "score_responses": 'score_responses(DATASET, {"q": {"actual_answer": "2"}})',
    "compute_aggregates": 'compute_aggregates([{"template_id": "t", "question_id": "q", "status": "success"}])',
}


@pytest.mark.full
@pytest.mark.parametrize("name", WITHOUT_JUDGES)
def test_scoring_without_judges_does_not_load_them(name: str) -> None:
    code = f"""
from graphrag_eval_lc import {name}
DATASET = [{{"template_id": "t", "questions": [{{"id": "q", "question_text": "1 + 1?", "reference_answer": "2"}}]}}]
{WITHOUT_JUDGES[name]}
import sys
from pathlib import Path
print(*sorted(sys.modules))
"""
    command = [sys.executable, "-c", code]
    loaded = set(subprocess.run(command, capture_output=True, text=True, check=True).stdout.split())
    packages = {module.partition(".")[0] for module in loaded}
    assert packages.isdisjoint({"openai", "ragas", "genai_prices", "langchain_core", "langchain_openai", "httpx"})
    assert "graphrag_eval_lc.judges.judging" not in loaded


@pytest.mark.full
def test_run_without_judges_does_not_load_them() -> None:
    code = """
from graphrag_eval_lc import run_benchmark
dataset = [{"template_id": "t", "questions": [{"id": "q", "question_text": "1 + 1?", "reference_answer": "2"}]}]
run_benchmark(lambda question: "2", dataset, progress="off")
import sys
from pathlib import Path
print(*sorted(sys.modules))
"""
    command = [sys.executable, "-c", code]
    loaded = set(subprocess.run(command, capture_output=True, text=True, check=True).stdout.split())
    assert loaded.isdisjoint({"openai", "ragas", "genai_prices", "langchain_openai", "graphrag_eval_lc.judges.judging"})


def test_names_of_metrics_load_nothing_else() -> None:
    assert modules_after("from graphrag_eval_lc.registry.metrics import MAIN_METRIC").isdisjoint(HEAVY)


@pytest.mark.full
def test_import_does_not_search_for_plugins(tmp_path: Path) -> None:
    info = tmp_path / "acme-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: acme\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[graphrag_eval_lc]\nacme = acme_of_the_test\n")
    (tmp_path / "acme_of_the_test.py").write_text("")
    path = f"import sys; sys.path.insert(0, {str(tmp_path)!r})"
    names = "register_metric, run_evaluation, compute_aggregates, load_dataset"
    loading = "from graphrag_eval_lc.config import load_config; load_config()"
    assert "acme_of_the_test" not in modules_after(f"{path}\nfrom graphrag_eval_lc import {names}")
    assert "acme_of_the_test" in modules_after(f"{path}\n{loading}")


def test_retry_decisions_load_no_agent_framework() -> None:
    assert modules_after("import graphrag_eval_lc.retrying").isdisjoint(HEAVY)
