"""Find out how well an agent answers questions from a knowledge graph, which step went wrong, and what it costs.

Names are loaded when they are first used, so that importing the package costs next to nothing.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from graphrag_eval_lc.public_names import only_public

if TYPE_CHECKING:
    from graphrag_eval_lc.aggregation import compute_aggregates
    from graphrag_eval_lc.benchmark.benchmark_run import BenchmarkRun, load_run
    from graphrag_eval_lc.benchmark.merge_runs import merge_runs
    from graphrag_eval_lc.benchmark.run_benchmark import arun_benchmark, run_benchmark
    from graphrag_eval_lc.benchmark.score_responses import score_responses, score_run
    from graphrag_eval_lc.capture import GraphRAGEvalCallbackHandler, capture_run
    from graphrag_eval_lc.compare import RunComparison, compare_runs, gate_results
    from graphrag_eval_lc.config import EvaluationConfig
    from graphrag_eval_lc.dataset.drafting import draft_dataset
    from graphrag_eval_lc.dataset.importing import import_dataset
    from graphrag_eval_lc.dataset.loading import load_dataset, load_responses
    from graphrag_eval_lc.dataset.validation import validate_dataset
    from graphrag_eval_lc.errors import GraphRAGEvalError, GraphRAGEvalWarning
    from graphrag_eval_lc.evaluation.evaluate import arun_evaluation, run_evaluation
    from graphrag_eval_lc.integrations.publishing import Published, publish_scores
    from graphrag_eval_lc.matching import StepKind, register_matcher, register_step_kind
    from graphrag_eval_lc.onboarding.migration import Migration, migrate
    from graphrag_eval_lc.registry import MetricSpec, register_evaluator, register_exporter, register_metric
    from graphrag_eval_lc.report.junit import write_junit
    from graphrag_eval_lc.report.markdown_summary import write_summary
    from graphrag_eval_lc.report.run_report import report_html, write_report
    from graphrag_eval_lc.run_store import RunTrend, StoredRun, list_runs, trend
    from graphrag_eval_lc.traces.reading import read_traces

__version__ = "0.2.0"

__all__ = [
    "BenchmarkRun",
    "EvaluationConfig",
    "GraphRAGEvalCallbackHandler",
    "GraphRAGEvalError",
    "GraphRAGEvalWarning",
    "MetricSpec",
    "Migration",
    "Published",
    "RunComparison",
    "RunTrend",
    "StepKind",
    "StoredRun",
    "arun_benchmark",
    "arun_evaluation",
    "capture_run",
    "compare_runs",
    "compute_aggregates",
    "draft_dataset",
    "gate_results",
    "import_dataset",
    "list_runs",
    "load_dataset",
    "load_responses",
    "load_run",
    "merge_runs",
    "migrate",
    "publish_scores",
    "read_traces",
    "register_evaluator",
    "register_exporter",
    "register_matcher",
    "register_metric",
    "register_step_kind",
    "report_html",
    "run_benchmark",
    "run_evaluation",
    "score_responses",
    "score_run",
    "trend",
    "validate_dataset",
    "write_junit",
    "write_report",
    "write_summary",
]

_ROOM_OF = {
    "BenchmarkRun": "benchmark.benchmark_run",
    "RunComparison": "compare",
    "EvaluationConfig": "config",
    "GraphRAGEvalCallbackHandler": "capture",
    "GraphRAGEvalError": "errors",
    "GraphRAGEvalWarning": "errors",
    "MetricSpec": "registry",
    "Migration": "onboarding.migration",
    "Published": "integrations.publishing",
    "StepKind": "matching",
    "RunTrend": "run_store",
    "StoredRun": "run_store",
    "arun_benchmark": "benchmark.run_benchmark",
    "arun_evaluation": "evaluation",
    "capture_run": "capture",
    "compare_runs": "compare",
    "compute_aggregates": "aggregation",
    "draft_dataset": "dataset.drafting",
    "gate_results": "compare",
    "import_dataset": "dataset.importing",
    "list_runs": "run_store",
    "load_dataset": "dataset",
    "load_responses": "dataset",
    "load_run": "benchmark.benchmark_run",
    "merge_runs": "benchmark.merge_runs",
    "migrate": "onboarding.migration",
    "publish_scores": "integrations.publishing",
    "read_traces": "traces.reading",
    "register_evaluator": "registry",
    "register_exporter": "registry",
    "register_matcher": "matching",
    "register_metric": "registry",
    "register_step_kind": "matching",
    "report_html": "report.run_report",
    "run_benchmark": "benchmark.run_benchmark",
    "run_evaluation": "evaluation",
    "score_responses": "benchmark.score_responses",
    "score_run": "benchmark.score_responses",
    "trend": "run_store",
    "validate_dataset": "dataset.validation",
    "write_junit": "report.junit",
    "write_report": "report.run_report",
    "write_summary": "report.markdown_summary",
}

# Public too, as well as the names above. All other packages and modules may change with any version.
_PUBLIC_PACKAGES = ("matching", "metrics", "judges", "compare", "dataset", "registry", "errors", "demo")


def __getattr__(name: str) -> Any:
    room = _ROOM_OF.get(name)
    if room is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"{__name__}.{room}"), name)
    globals()[name] = value
    return value


__dir__ = only_public(globals(), packages=_PUBLIC_PACKAGES)
