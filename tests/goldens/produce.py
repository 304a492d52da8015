"""Produce all outputs of one commit: run with its tree first on PYTHONPATH, followed by the tests' folder.

``python produce.py TREE FOLDER`` writes into FOLDER. It uses only the command line and public names, so that it works
with every commit. If a commit does not support a part, the error is written instead of the output.
"""

import json
import os
import re
import subprocess
import sys
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from shutil import copy, copytree
from typing import Any
from zlib import crc32

from artefacts import Artefacts
from judgements import judgement
from masking_times import frozen
from rows import KINDS_OF_FIELDS, RECORDS, outcome_of, read_records
from support.openai_stub import OpenAIStub

HERE = Path(__file__).resolve().parent
MAIN = "import sys; sys.argv[0] = 'graphrag-eval-lc'; from graphrag_eval_lc.cli import main; main()"
CONFORMANCE = "GRAPHRAG_EVAL_LC_CONFORMANCE_DIR"
_LONGEST_SEC = 300
# Old names of commands and options, for a base before they were grouped.
_FORMER = {("dataset", "draft"): "draft-dataset", ("judge", "agreement"): "judge-agreement"}


class Side:
    """One commit: its command line in its own folder, and the folder of its outputs.

    Args:
        tree: The folder that contains the package.
        folder: The output folder: ``artefacts`` is compared, the commands run in ``work``.
    """

    def __init__(self, tree: Path, folder: Path) -> None:
        self.work = folder / "work"
        self.work.mkdir(parents=True)
        self.tree = tree
        self.artefacts = Artefacts(folder / "artefacts", {str(tree): "<tree>", str(self.work): "<work>"})
        for path in (HERE / "inputs").iterdir():
            if path.is_file():
                copy(path, self.work)

    def command(
        self, name: str | None, *arguments: str, mask: str | None = None, stub: OpenAIStub | None = None
    ) -> str:
        """Run a command, write its output if ``name`` is given, and return its standard output.

        Args:
            name: The artefact; None for no artefact.
            arguments: The command line.
            mask: A regular expression of what to mask in the output.
            stub: The server that replaces http://judge.test.
        """
        environment = {key: value for key, value in os.environ.items() if not key.lower().endswith("_proxy")}
        if stub is not None:
            environment["HTTP_PROXY"] = environment["http_proxy"] = stub.base_url.removesuffix("/v1")
        if not (self.tree / "graphrag_eval_lc/cli/command.py").exists() and arguments[:2] in _FORMER:
            arguments = (_FORMER[arguments[:2]], *arguments[2:])
        found = subprocess.run(
            [sys.executable, "-c", MAIN, *arguments],
            cwd=self.work,
            env={**environment, "COLUMNS": "120", "NO_COLOR": "1", "JUDGE_KEY": "none", "PYTHONPATH": str(self.tree)},
            capture_output=True,
            text=True,
            timeout=_LONGEST_SEC,
            check=False,
        )
        if name:
            output = f"{found.stdout}--- standard error\n{found.stderr}"
            output = re.sub(mask, "<masked>", output) if mask else output
            output = "".join(f"{line.rstrip()}\n" for line in output.splitlines())
            self.artefacts.text(
                name, f"$ graphrag-eval-lc {' '.join(arguments)}\nexit code {found.returncode}\n{output}"
            )
        return found.stdout


# --- outputs ---------------------------------------------------------------------------------------------------------


def helps(side: Side) -> None:
    """Every --help, invalid usage, and the public names."""
    top = side.command("help/graphrag-eval-lc.txt", "--help")
    commands = re.findall(r"^│ ([a-z][a-z-]+)  ", top, re.MULTILINE)
    for command in commands:
        side.command(f"help/{command}.txt", command, "--help")
    side.command("help/wrong_metric.txt", "compare", "a", "b", "--max-drop", "7")
    side.command("help/wrong_measure.txt", "score", "dataset.yaml", "r.jsonl", "-o", "x", "--measures", "P@x")
    side.command("help/wrong_gate.txt", "score", "dataset.yaml", "r.jsonl", "-o", "x", "--fail-under", "steps_score")


def names(side: Side) -> None:
    from public_names import public_names

    for package, text in public_names():
        side.artefacts.text(f"public_names/{package}.txt", text)


def demo(side: Side) -> None:
    """The demo, live and frozen, and compared with a run that is worse in some questions and better in none."""
    side.command("demo/demo.txt", "demo", "--output", "demo", "--quiet", mask=r"(?<![\d.,$])\d+\.\d\d(?= │)")
    side.artefacts.run_folder("demo/live", side.work / "demo", is_live=True)
    _freeze(side.work / "demo")
    _whole(side, "demo", plots=("steps_score", "retrieval_ids_recall", "total_tokens"))
    copytree(side.work / "demo", side.work / "demo_b")
    path = side.work / "demo_b" / "responses.jsonl"
    path.write_text("".join(map(_worse, path.read_text(encoding="utf-8").splitlines())), encoding="utf-8")
    side.command("demo_b/score.txt", "score", "demo_b", "--label", "another")
    side.artefacts.run_folder("demo_b", side.work / "demo_b")
    compare = ("compare", "demo", "demo_b")
    side.command("demo_compare/text.txt", *compare, "--html", "compare.html", "--csv", "compare.csv", "--show", "3")
    side.artefacts.page("demo_compare/page", side.work / "compare.html")
    side.artefacts.text("demo_compare/metrics.csv", (side.work / "compare.csv").read_text(encoding="utf-8"))
    side.command("demo_compare/regression.txt", *compare, "--fail-on-regression")
    for metric in ("total_tokens", "elapsed_sec", "retrieval_ids_recall", "cost", "nothing"):
        gates = ("--fail-on-regression", "--fail-under", f"{metric}=0.5", "--max-drop", "0.01")
        side.command(f"demo_compare/regression_{metric}.txt", *compare, "--metric", metric, *gates)
    side.command(
        "demo_compare/three.txt", "compare", "demo", "demo_b", "demo", "--label", "a", "--label", "b", "--label", "c"
    )
    side.command(
        "demo_compare/gate.txt", "score", "demo", "--fail-under", "steps_score=0.7", "--fail-under", "total_tokens=9"
    )
    _comparison(side, "demo_compare", "demo", "demo_b", ("steps_score", "total_tokens", "elapsed_sec"))


def judged(side: Side) -> None:
    """Runs with the stub: repeats, errors, custom evaluations, evaluators and a custom matcher."""
    scorers = ["--plugin", "scorers.py"]
    for function in ("answer_words", "saved_sec", "is_short", "broken"):
        scorers += ["--evaluator", f"scorers.py:{function}"]
    for name, agent in (("judged", "make_agent"), ("judged_b", "make_better_agent")):
        with _stub(side, f"{name}/requests.json") as stub:
            run = ("run", "dataset.yaml", "--agent", f"agent.py:{agent}", "-o", name, "-c", "config.yaml", "--quiet")
            mask = r"(?<![\d.,$])\d+\.\d\d(?= │)"
            side.command(f"{name}/run.txt", *run, *scorers, "--repeats", "2", "--tag", "x", mask=mask, stub=stub)
        side.artefacts.run_folder(f"{name}/live", side.work / name, is_live=True)
        _freeze(side.work / name)
        side.command(f"{name}/refused.txt", "score", name)
        with _stub(side, f"{name}/requests_again.json") as stub:
            side.command(None, "score", name, *scorers, stub=stub)
            plots = ("steps_score", "answer_f1", "retrieval_answer_recall", "saved_sec", "elapsed_sec", "cost")
            _whole(side, name, *scorers, plots=plots, stub=stub)
    copytree(side.work / "judged", side.work / "otherwise")
    options = ("--config", "config_otherwise.yaml", *scorers)
    _whole(side, "otherwise", *options, plots=("steps_score", "retrieval_ids_ndcg@2"))
    copytree(side.work / "judged", side.work / "dropped")
    with _stub(side, "dropped/requests.json") as stub:
        side.command("dropped/score.txt", "score", "dropped", "--drop-missing", "--measures", "P@5,nDCG@10", stub=stub)
    side.artefacts.run_folder("dropped", side.work / "dropped")
    compare = ("compare", "judged", "judged_b")
    side.command("judged_compare/text.txt", *compare, "--html", "compare_j.html", "--csv", "compare_j.csv")
    side.artefacts.page("judged_compare/page", side.work / "compare_j.html")
    side.artefacts.text("judged_compare/metrics.csv", (side.work / "compare_j.csv").read_text(encoding="utf-8"))
    for metric in (
        "saved_sec",
        "answer_f1",
        "query_economy",
        "retrieval_answer_f1",
        "answer_words",
        "agent_cost",
        "judges_cost",
    ):
        gates = ("--fail-on-regression", "--max-drop", "0.01", "--show", "2")
        side.command(f"judged_compare/regression_{metric}.txt", *compare, "--metric", metric, *gates)
        side.command(f"judged_compare/gate_{metric}.txt", *compare, "--fail-under", f"{metric}=0.5", "--show", "0")
    _comparison(side, "judged_compare", "judged", "judged_b", ("steps_score", "saved_sec", "cost", "answer_relevance"))


def tables(side: Side) -> None:
    """The two commands for tables of answers."""
    with _stub(side, "tables/requests.json") as stub:
        given = ("--config", "config.yaml", "--quiet")
        side.command(
            "tables/agreement.txt", "judge", "agreement", "labelled.tsv", *given, "-o", "agreed.tsv", stub=stub
        )
        for metric in ("answer_recall", "answer_precision", "answer_relevance"):
            side.command(
                f"tables/{metric}.txt", "judge", "agreement", "labelled.tsv", *given, "--metric", metric, stub=stub
            )
        judge = ("answer-correctness", "-i", "labelled.tsv", "-o", "judged.tsv")
        side.command("tables/judged.txt", *judge, *given, stub=stub)
    for name in ("agreed.tsv", "judged.tsv"):
        path = side.work / name
        side.artefacts.text(f"tables/{name}", path.read_text(encoding="utf-8") if path.exists() else "there is none\n")


def evaluated(side: Side) -> None:
    """Python functions that write nothing."""
    from graphrag_eval_lc import (
        compute_aggregates,
        draft_dataset,
        load_dataset,
        run_evaluation,
        score_responses,
        validate_dataset,
    )

    sys.path.insert(0, str(side.work))
    import_module("scorers")  # registers the matcher

    dataset = load_dataset(side.work / "dataset.yaml")
    lines = (side.work / "judged" / "responses.jsonl").read_text(encoding="utf-8").splitlines()
    responses = [json.loads(line) for line in lines]
    for name, config in (("default", None), ("otherwise", str(side.work / "config_otherwise.yaml"))):
        results = run_evaluation(dataset, responses, config)
        side.artefacts.json(f"evaluated/{name}_results.json", list(results))
        side.artefacts.json(f"evaluated/{name}_aggregates.json", compute_aggregates(results, config))
        run = score_responses(dataset, responses, config=config)
        side.artefacts.json(f"evaluated/{name}_scored.json", [list(run.results), run.aggregates])
    problems = validate_dataset(side.work / "bad_dataset.yaml")
    side.artefacts.text("evaluated/problems.txt", "".join(f"{problem}\n" for problem in problems))
    side.artefacts.json("evaluated/drafted.json", draft_dataset(responses))


def validated(side: Side) -> None:
    """The output and files of validate and dataset draft."""
    good, bad = "dataset.yaml", "bad_dataset.yaml"
    recorded = ("--responses", "judged/responses.jsonl")
    for name, arguments in {
        "demo": (str(side.tree / "graphrag_eval_lc/demo/data/dataset.yaml"),),
        "good": (good,),
        "good_config": (good, "--config", "config.yaml"),
        "bad": (bad,),
        "bad_config": (bad, "--config", "config.yaml"),
        "responses": (good, *recorded),
        "responses_config": (good, *recorded, "--config", "config.yaml"),
        "bad_responses": (good, "--responses", "bad_responses.jsonl"),
        "no_dataset": ("agent.py",),
    }.items():
        side.command(f"validate/{name}.txt", "validate", *arguments)
    for name, arguments in {
        "demo": ("demo",),
        "judged": ("judged",),
        "kept": ("judged", "--keep-references"),
        "responses": ("judged/responses.jsonl",),
        "config": ("judged/responses.jsonl", "--dataset", "dataset.yaml", "--config", "config.yaml"),
    }.items():
        side.command(f"draft/{name}.txt", "dataset", "draft", *arguments, "-o", f"draft_{name}.yaml")
        path = side.work / f"draft_{name}.yaml"
        side.artefacts.text(f"draft/{name}.yaml", path.read_text(encoding="utf-8") if path.exists() else "none\n")


def real_runs(side: Side) -> None:
    """Recorded runs of real agents, with both scoring modes."""
    for folder in sorted((_conformance() / "real_runs").iterdir()):
        if not folder.is_dir():
            continue
        for scoring in ("last_group", "all_groups"):
            name = f"{folder.name}_{scoring}"
            config = side.work / f"{name}.yaml"
            config.write_text(f"steps: {{scoring: {scoring}}}\n", encoding="utf-8")
            files = [str(folder / "reference.yaml"), str(folder / "responses.jsonl")]
            options = ("--config", config.name, "--output", name, "--worst", "3")
            side.command(f"{name}/score.txt", "score", *files, *options)
            side.artefacts.run_folder(name, side.work / name)
            if (scoring == "last_group") == (folder.name == "substations"):
                _freeze_record(side.work / name)
                side.command(None, "report", name)
                side.artefacts.page(f"{name}/report", side.work / name / "report.html")
                _frames(side, name, ("steps_score",))
                side.command(f"{name}/draft.txt", "dataset", "draft", name, "-o", f"{name}_draft.yaml")
                side.artefacts.text(
                    f"{name}/draft.yaml", (side.work / f"{name}_draft.yaml").read_text(encoding="utf-8")
                )
        runs = [f"{folder.name}_{scoring}" for scoring in ("last_group", "all_groups")]
        side.command(f"{folder.name}_compare.txt", "compare", *runs, "--show", "3")


def vectors(side: Side) -> None:
    """The vectors, through the public functions."""
    from graphrag_eval_lc import compute_aggregates, metrics
    from graphrag_eval_lc.matching import compare_sparql_results, match_steps

    def each(file: str, function: Callable[[dict[str, Any]], Any]) -> None:
        given = json.loads((_conformance() / "vectors" / f"{file}.json").read_text(encoding="utf-8"))
        found = {vector["id"]: _attempted(lambda vector=vector: function(vector["input"])) for vector in given}
        side.artefacts.json(f"vectors/{file}.json", _plain(found))

    for file in ("steps_match", "steps_greedy_suboptimal"):
        each(
            file,
            lambda given: [match_steps(**given, scoring=scoring) for scoring in ("last_group", "all_groups")],
        )
    for file in ("sparql_match", "sparql_disagreements"):
        each(file, lambda given: [compare_sparql_results(**given, strict=strict) for strict in (False, True)])
    each("aggregates", lambda given: [compute_aggregates(given["samples"], config) for config in _configs(given)])
    each("timeseries", _time_series_steps(match_steps))
    functions = ("precision", "recall", "f1", "reciprocal_rank", "average_precision", "ndcg", "hit_rate", "r_precision")

    def ranked(relevant: Any, retrieved: Any, cutoffs: Any) -> Any:
        found = {
            name: [getattr(metrics, name)(relevant, retrieved, k) for k in (None, *cutoffs)] for name in functions[:4]
        }
        found |= {name: getattr(metrics, name)(relevant, retrieved) for name in functions[4:]}
        found["recall_at_k"] = [metrics.recall_at_k(relevant, retrieved, k) for k in cutoffs]
        return found

    each("retrieval_ids", lambda given: ranked(given["relevant_ids"], given["retrieved_ids"], given["k"]))
    each("retrieval_autorag", lambda given: ranked(given["retrieval_gt"], given["retrieved_ids"], (1, 3)))
    each("context_precision_ragas", lambda given: _contexts(metrics, given))


def rows(side: Side) -> None:
    """Recorded comparisons and parsed rows: one file per operation and field, one line per record."""
    lines: dict[str, list[str]] = {}
    for record in read_records(HERE / "inputs" / RECORDS):
        outcome = outcome_of(record)
        for kind, fields in KINDS_OF_FIELDS.items():
            found = {field: outcome[field] for field in fields if field in outcome}
            if found and (kind != "form" or record["op"] == "read"):
                form = record["outcome"].get("form") or "no form"
                line = f"{record['id']} ({form}): {json.dumps(found, ensure_ascii=False, sort_keys=True)}"
                lines.setdefault(f"rows/{record['op']}_{kind}.txt", []).append(line)
    for name, of_kind in lines.items():
        side.artefacts.text(name, "\n".join([*of_kind, ""]))


PARTS = {
    "helps": helps,
    "names": names,
    "demo": demo,
    "judged": judged,
    "tables": tables,
    "evaluated": evaluated,
    "validated": validated,
    "rows": rows,
}
RECORDED_PARTS = {"real_runs": real_runs, "vectors": vectors}


# --- parts -----------------------------------------------------------------------------------------------------------


def _whole(side: Side, run: str, *options: str, plots: tuple[str, ...], stub: OpenAIStub | None = None) -> None:
    """Re-score a run's folder and write all its outputs."""
    side.command(f"{run}/score.txt", "score", run, *options, stub=stub)
    side.artefacts.run_folder(run, side.work / run)
    side.artefacts.page(f"{run}/report", side.work / run / "report.html")
    _frames(side, run, plots)


def _frames(side: Side, name: str, plots: tuple[str, ...]) -> None:
    """Write the tables and plots of a run, and its notebook output."""
    import yaml
    from drawn import drawn

    from graphrag_eval_lc import BenchmarkRun

    folder = side.work / name
    aggregates = yaml.safe_load((folder / "aggregates.yaml").read_text(encoding="utf-8"))
    run = BenchmarkRun(aggregates, output_dir=folder)
    for path in run.to_csv(folder / "tables"):
        side.artefacts.text(f"{name}/frames/{path.name}", path.read_text(encoding="utf-8"))
    side.artefacts.text(f"{name}/frames/notebook.txt", f"{run!r}\n{run._repr_html_()}\n{run.results._repr_html_()}\n")
    for kind in ("questions", "steps", "aggregates"):
        types = run.to_pandas(kind).dtypes
        side.artefacts.text(f"{name}/frames/{kind}_types.txt", f"{types.to_string()}\n")
    for metric in plots:
        for plot in ("plot_scores", "plot_templates"):
            text = _attempted(lambda plot=plot, metric=metric: drawn(getattr(run, plot)(metric)))
            side.artefacts.text(f"{name}/plots/{plot}_{metric}.txt", f"{text}")
    side.artefacts.text(f"{name}/plots/plot_time.txt", f"{_attempted(lambda: drawn(run.plot_time()))}")
    _close_plots()


def _comparison(side: Side, name: str, a: str, b: str, metrics: tuple[str, ...]) -> None:
    """Write the Python outputs of a comparison."""
    from drawn import drawn

    from graphrag_eval_lc import compare_runs

    found = compare_runs(side.work / a, side.work / b)
    side.artefacts.text(f"{name}/printed.txt", f"{found}\n{found!r}\n{found._repr_html_()}\n")
    side.artefacts.json(f"{name}/comparison.json", found.to_dict())
    for kind in ("metrics", "questions"):
        side.artefacts.text(
            f"{name}/{kind}_frame.csv", found.to_csv(side.work / f"{name}.csv", kind).read_text("utf-8")
        )
    side.artefacts.text(
        f"{name}/gates.txt", "".join(f"{gate.state}: {gate}\n" for gate in found.gate_results(["--fail-on-regression"]))
    )
    for is_spent in (False, True):
        text = _attempted(lambda is_spent=is_spent: drawn(found.plot_differences(spent=is_spent)))
        side.artefacts.text(f"{name}/plots/differences_spent_{is_spent}.txt", f"{text}")
    for metric in metrics:
        text = _attempted(lambda metric=metric: drawn(found.plot_questions(metric)))
        side.artefacts.text(f"{name}/plots/questions_{metric}.txt", f"{text}")
    _close_plots()


def _freeze(folder: Path) -> None:
    """Write constant times and ids into a run's folder."""
    _freeze_record(folder)
    path = folder / "responses.jsonl"
    responses = frozen([json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()])
    path.write_text("".join(f"{json.dumps(each, ensure_ascii=False)}\n" for each in responses), encoding="utf-8")


def _freeze_record(folder: Path) -> None:
    path = folder / "run.json"
    record = json.loads(path.read_text(encoding="utf-8"))
    moments = {
        "started": "2026-01-01T00:00:00.000+00:00",
        "finished": "2026-01-01T00:02:00.000+00:00",
        "elapsed_sec": 120.0,
    }
    record |= {"run_id": "20260101T000000Z-00000000", "times": {**moments, "sessions": [moments]}}
    record["versions"] = dict.fromkeys(record["versions"], "1.0")
    path.write_text(json.dumps(record, ensure_ascii=False, indent=2), encoding="utf-8")


def _worse(line: str) -> str:
    """Return a response that lacks its last step, failed, or used more, depending on the question's id."""
    response = json.loads(line)
    chance = crc32(response["question_id"].encode()) % 5
    if chance == 0 and response["actual_steps"]:
        response["actual_steps"].pop()
    if chance == 1:
        response["status"], response["error"] = "error", "TimeoutError: after 600 s"
        response.pop("actual_answer", None)
    if chance > 1 and "total_tokens" in response:
        response["input_tokens"] += 500
        response["total_tokens"] += 500
    return f"{json.dumps(response, ensure_ascii=False)}\n"


@contextmanager
def _stub(side: Side, name: str) -> Iterator[OpenAIStub]:
    """Yield a judge over HTTP, and write its requests at the end."""
    with OpenAIStub() as stub:
        stub.answer = judgement
        yield stub
    asked = [{"path": request.path, **request.body} for request in stub.requests]
    side.artefacts.json(name, sorted(asked, key=lambda body: json.dumps(body, sort_keys=True)))


def _time_series_steps(match_steps: Callable[..., Any]) -> Callable[[dict[str, Any]], Any]:
    def score(given: dict[str, Any]) -> Any:
        if "reference_args" not in given:
            return None
        moment = given.get("anchor")
        moment = moment["datetime"] if isinstance(moment, dict) and "datetime" in moment else moment
        actual = {"name": given["function"], "id": "a", "status": "success", "execution_timestamp": moment}
        reference = {"name": given["function"], "args": given["reference_args"]}
        return match_steps([[reference]], [{**actual, "args": given.get("actual_args")}])

    return score


def _configs(given: dict[str, Any]) -> Iterator[dict[str, Any]]:
    import yaml

    for errors in ("exclude", "include"):
        yield {**yaml.safe_load(given.get("config_yaml", "{}")), "aggregates": {"errors": errors}}


def _contexts(metrics: Any, given: dict[str, Any]) -> Any:
    if "retrieved_context_ids" in given:
        ids = given["retrieved_context_ids"], given["reference_context_ids"]
        return [metrics.id_context_precision(*ids), metrics.id_context_recall(*ids)]
    if "retrieved_contexts" in given and "reference_contexts" in given:
        texts, bound = (given["retrieved_contexts"], given["reference_contexts"]), given["threshold"]
        return [
            metrics.text_context_precision(*texts, threshold=bound),
            metrics.text_context_recall(*texts, threshold=bound),
        ]
    return None


def _plain(value: Any) -> Any:
    """Return a result as JSON values: for objects, their public attributes."""
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, set | frozenset):
        return sorted(map(repr, value))
    if type(value).__module__.startswith("graphrag_eval_lc"):
        attributes = {name: getattr(value, name) for name in dir(value) if not name.startswith("_")}
        return {name: _plain(item) for name, item in attributes.items() if not callable(item)}
    return repr(value)


def _attempted(function: Callable[[], Any]) -> Any:
    """Return the result of a function, or its error."""
    try:
        return function()
    except Exception as problem:
        return f"{type(problem).__name__}: {problem}\n"


def _close_plots() -> None:
    from matplotlib import pyplot

    pyplot.close("all")


def _conformance() -> Path:
    return Path(os.environ[CONFORMANCE])


def main() -> None:
    tree, folder = Path(sys.argv[1]).resolve(), Path(sys.argv[2]).resolve()
    import graphrag_eval_lc

    if Path(graphrag_eval_lc.__file__).parent != tree / "graphrag_eval_lc":
        sys.exit(f"the package comes from {graphrag_eval_lc.__file__}, not from {tree}")
    for name in [key for key in os.environ if key.startswith(("OPENAI_", "LANGSMITH_", "LANGCHAIN_"))]:
        del os.environ[name]
    side = Side(tree, folder)
    for name, part in {**PARTS, **(RECORDED_PARTS if os.environ.get(CONFORMANCE) else {})}.items():
        start = time.monotonic()
        try:
            part(side)
        except Exception:
            traceback.print_exc()
            lines = traceback.format_exc().strip().splitlines()
            side.artefacts.text(f"{name}_ended_early.txt", f"{lines[-1]}\n")
        print(f"{name}: {time.monotonic() - start:.0f} s", file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
