"""Looks at all that a run needs, and says of each part whether it is good, and if not how to mend it."""

import sys
import tempfile
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from functools import partial
from pathlib import Path
from typing import Any, Final, Literal

from graphrag_eval_lc.benchmark.agents import aload_agent
from graphrag_eval_lc.benchmark.ready_agents import Agent
from graphrag_eval_lc.benchmark.run_benchmark import run_benchmark
from graphrag_eval_lc.compare.gate_names import KnownMetrics, check_gates
from graphrag_eval_lc.config import EvaluationConfig, load_config
from graphrag_eval_lc.config.gates import GateConfig
from graphrag_eval_lc.dataset import load_dataset
from graphrag_eval_lc.dataset.validation import validate_dataset
from graphrag_eval_lc.errors import GraphRAGEvalError
from graphrag_eval_lc.event_loop.loop import run_sync
from graphrag_eval_lc.files.folder_lock import FolderLock
from graphrag_eval_lc.judges.judging import wanted_judges
from graphrag_eval_lc.judges.model_interface import ClosedAnswer
from graphrag_eval_lc.judges.models import run_models
from graphrag_eval_lc.masking import masked_text
from graphrag_eval_lc.matching.step_views import StepViews
from graphrag_eval_lc.matching.unknown_tools import reference_names
from graphrag_eval_lc.onboarding.agent_tools import tools_in
from graphrag_eval_lc.onboarding.installed import extras, installed, python_version
from graphrag_eval_lc.prices import dollars
from graphrag_eval_lc.records import Template, is_error
from graphrag_eval_lc.registry.metrics import ELAPSED_SEC, TOTAL_TOKENS
from graphrag_eval_lc.registry.step_kinds import RETRIEVAL, names_that_fulfil
from graphrag_eval_lc.texts import counted, listed, shortened

Level = Literal["ok", "note", "warning", "error"]
_PYTHONS: Final = ((3, 11), (3, 14))
_FIRST_SHOWN: Final = 3
_LONGEST: Final = 300


@dataclass(frozen=True, slots=True)
class Check:
    """What was found of one thing.

    Attributes:
        area: What it concerns: versions, extras, config, agent, dataset, gates, models or output.
        level: ``ok``; ``note`` for what is good to know; ``warning`` where scores may suffer; ``error`` where a run
            fails.
        what: What was found.
        hint: How to mend it; empty where there is nothing to mend.
    """

    area: str
    level: Level
    what: str
    hint: str = ""


@dataclass(frozen=True, slots=True)
class Examined:
    """What is looked at.

    Attributes:
        agent: The agent's spec; None: none is known.
        dataset: The dataset's path; None: none is known.
        config: The config's path; None: the defaults.
        output: The folder of runs; None: none is known.
        agent_key_env: The environment variable with the key of the agent's server.
        input_fn: Whether a function makes the agent's input.
        asks_agent: Whether the agent is asked the first question of the dataset, which may cost.
        asks_models: Whether each model of the judges gets one tiny request, which costs next to nothing.
    """

    agent: str | None = None
    dataset: Path | None = None
    config: Path | None = None
    output: Path | None = None
    agent_key_env: str | None = None
    input_fn: str | None = None
    asks_agent: bool = False
    asks_models: bool = False


def examine(examined: Examined) -> Iterator[Check]:
    """Yield what is found, each as soon as it is known; one check that breaks ends no other.

    Example:
        >>> [check.level for check in examine(Examined()) if check.area == "versions"][:1]
        ['ok']
    """
    yield from _guarded("versions", _versions)
    yield from _guarded("extras", _extras)
    loaded: dict[str, Any] = {"config": EvaluationConfig(), "templates": None, "tools": {}}
    yield from _guarded("config", partial(_config, examined, loaded))
    yield from _guarded("agent", partial(_agent, examined, loaded))
    yield from _guarded("dataset", partial(_dataset, examined, loaded))
    yield from _guarded("steps", partial(_steps, loaded))
    yield from _guarded("gates", partial(_gates, loaded))
    yield from _guarded("models", partial(_models, examined, loaded))
    yield from _guarded("output", partial(_output, examined))
    if examined.asks_agent:
        yield from _guarded("answer", partial(_answer, examined, loaded))


def _guarded(area: str, checks: Callable[[], Iterator[Check]]) -> Iterator[Check]:
    try:
        for check in checks():
            yield Check(area, check.level, masked_text(check.what), masked_text(check.hint))
    except GraphRAGEvalError as problem:
        yield Check(area, "error", masked_text(_without_hint(problem)), masked_text(problem.hint or ""))
    except Exception as problem:
        what = f"this check failed with {type(problem).__name__}: {shortened(str(problem), _LONGEST)}"
        yield Check(area, "error", masked_text(what), "Run it with --debug for the traceback.")


def _without_hint(problem: GraphRAGEvalError) -> str:
    text = str(problem)
    return text.removesuffix(f" {problem.hint}") if problem.hint else text


def _good(what: str) -> Check:
    return Check("", "ok", what)


def _versions() -> Iterator[Check]:
    python, (low, high) = python_version(), _PYTHONS
    supported = f"{low[0]}.{low[1]} to {high[0]}.{high[1]}"
    if low <= sys.version_info[:2] <= high:
        yield _good(f"Python {python}")
    else:
        yield Check("", "error", f"Python {python}", f"Use Python {supported}.")
    core = [each for each in installed() if each.extra is None]
    for each in core:
        if each.version is None:
            yield Check("", "error", f"{each.name} is not installed", f"Run: pip install '{each.name}{each.needed}'")
        elif not each.is_in_range:
            hint = f"Run: pip install '{each.name}{each.needed}'"
            yield Check("", "warning", f"{each.name} {each.version} was not tested with this package", hint)
    if core and all(each.is_in_range for each in core):
        shown = [f"{each.name} {each.version}" for each in core if each.name.startswith("lang")]
        yield _good(f"{', '.join(shown)} and {counted(len(core) - len(shown), 'further package')} as tested")


def _extras() -> Iterator[Check]:
    found = installed()
    missing = extras(found)
    complete = [extra for extra, packages in missing.items() if not packages]
    if complete:
        yield _good(f"installed: {', '.join(complete)}")
    lacking = {extra: packages for extra, packages in missing.items() if packages}
    if lacking:
        about = "; ".join(f"[{extra}] lacks {', '.join(packages)}" for extra, packages in lacking.items())
        hint = f"Only what uses them needs them. Run: pip install 'graphrag-eval-lc[{','.join(lacking)}]'"
        yield Check("", "note", about, hint)
    for each in found:
        if each.extra in complete and not each.is_in_range:
            hint = f"Run: pip install '{each.name}{each.needed}'"
            yield Check("", "warning", f"{each.name} {each.version} was not tested with [{each.extra}]", hint)


def _config(examined: Examined, loaded: dict[str, Any]) -> Iterator[Check]:
    if examined.config is None:
        yield Check("", "note", "there is none, so that the defaults count", "graphrag-eval-lc init writes one.")
        return
    loaded["config"] = load_config(examined.config)
    yield _good(str(examined.config))


def _agent(examined: Examined, loaded: dict[str, Any]) -> Iterator[Check]:
    if examined.agent is None:
        yield Check("", "error", "none is named", "Add --agent my_agent.py:agent, or run: {agent: …} to the config.")
        return
    spec = examined.agent

    async def load() -> tuple[Agent, dict[str, str], str | None]:
        agent = await aload_agent(spec, has_input_fn=examined.input_fn is not None, key_variable=examined.agent_key_env)
        tools = {name: tool.description for name, tool in tools_in(agent.runnable).items()}
        return agent, tools, await agent.aclose()

    agent, tools, problem = run_sync(load)
    loaded["tools"] = tools
    takes = "a question's text" if agent.takes == "text" else "messages"
    yield _good(f"{spec} takes {takes}{f'; tools: {listed(list(tools))}' if tools else ''}")
    for warning in agent.warnings:
        yield Check("", "warning", warning)
    if problem is not None:
        yield Check("", "warning", problem)
    yield from _unknown_tools(loaded["config"], tools)


def _unknown_tools(config: EvaluationConfig, tools: Collection[str]) -> Iterator[Check]:
    """Yield the tools that the config names and the agent does not have, as far as its tools can be seen."""
    retrieved = config.capture.retrieval_documents
    named = {
        "steps.names": list(config.steps.names),
        "capture.retrieval_documents": [] if isinstance(retrieved, bool) else retrieved,
    }
    for key, names in named.items() if tools else ():
        for name in names:
            if name not in tools:
                near = get_close_matches(name, list(tools), n=1)
                hint = f"Did you mean {near[0]}?" if near else f"Its tools are {listed(list(tools))}."
                yield Check("", "warning", f"{key} names {name}, which is no tool of the agent that can be seen", hint)


def _dataset(examined: Examined, loaded: dict[str, Any]) -> Iterator[Check]:
    if examined.dataset is None:
        yield Check("", "error", "none is named", "Name it, or add run: {dataset: questions.yaml} to the config.")
        return
    problems = validate_dataset(examined.dataset, config=loaded["config"])
    errors = [each for each in problems if each.severity == "error"]
    for each in errors[:_FIRST_SHOWN]:
        yield Check("", "error", str(each).removesuffix(f" {each.hint}"), each.hint)
    if len(errors) > _FIRST_SHOWN:
        more = f"{counted(len(errors) - _FIRST_SHOWN, 'more problem')}"
        yield Check("", "error", more, f"graphrag-eval-lc validate {examined.dataset} shows all.")
    if errors:
        return
    templates = loaded["templates"] = load_dataset(examined.dataset)
    questions = [question for template in templates for question in template.get("questions") or ()]
    about = f"{counted(len(questions), 'question')} in {counted(len(templates), 'template')}"
    yield _good(f"{examined.dataset}: {about}") if questions else Check("", "error", about, "Write a question.")
    if problems:
        hint = f"graphrag-eval-lc validate {examined.dataset} shows them."
        yield Check("", "warning", f"{counted(len(problems), 'warning')} about it", hint)
    if drafts := sum(bool(question.get("draft")) for question in questions):
        what = f"{counted(drafts, 'question is a draft', 'questions are drafts')} of what the agent did"
        yield Check("", "note", what, "Check each, then remove draft: true.")
    if without := sum(not question.get("reference_steps") for question in questions):
        what = f"{counted(without, 'question has', 'questions have')} no reference steps, so that no steps are scored"
        yield Check("", "note", what, "graphrag-eval-lc dataset draft drafts them from a run.")


def _steps(loaded: Mapping[str, Any]) -> Iterator[Check]:
    """Yield the reference steps that no tool of the agent can fulfil, as far as its tools can be seen."""
    config, templates, tools = loaded["config"], loaded["templates"], loaded["tools"]
    if not templates or not tools:
        return
    views = StepViews(config.steps, config.sparql, config.retrieval)
    names = reference_names(templates)
    fulfilling = {name: [tool for tool in tools if views.may_fulfil(tool, name)] for name in names}
    spare = sorted(set(tools).difference(*fulfilling.values()))
    for name in (each for each, found in fulfilling.items() if not found):
        what = f"no tool of the agent that can be seen fulfils reference steps called {name}"
        target = name if name in (needed := names_that_fulfil(name)) else min(needed)
        tool = spare[0] if len(spare) == 1 else "TOOL"
        who = f"{tool} is this tool" if len(spare) == 1 else "a tool does so under another name"
        hint = f"If {who}, write steps: {{names: {{{tool}: {target}}}}} in the config."
        if name == RETRIEVAL:
            hint = f"Name the tool that searches documents: retrieval: {{steps: [{tool}]}} in the config."
        others = f" Tools without a reference step: {listed(spare)}." if len(spare) > 1 else ""
        yield Check("", "warning", what, hint + others)
    if names and all(fulfilling.values()):
        shown = [name if found == [name] else f"{name} by {listed(found)}" for name, found in fulfilling.items()]
        yield _good(f"each kind of reference step can be fulfilled: {'; '.join(shown)}")


def _gates(loaded: Mapping[str, Any]) -> Iterator[Check]:
    config: EvaluationConfig = loaded["config"]
    gates: list[GateConfig] = config.gates
    if not gates:
        yield Check("", "note", "there are none", "A run fails a job only where gates: in the config say so.")
        return
    ids = [str(template["template_id"]) for template in loaded["templates"] or ()]
    known = KnownMetrics.of(config, (), has_llm=False, has_embeddings=False)
    doubts = check_gates(
        gates if ids else [gate for gate in gates if gate.template is None], known, ids, of_config=True
    )
    for doubt in doubts:
        yield Check("", "note", doubt)
    yield _good(counted(len(gates), "gate"))


class TinyAnswer(ClosedAnswer):
    """The answer to a question that only shows whether the model answers."""

    word: str


def _models(examined: Examined, loaded: Mapping[str, Any]) -> Iterator[Check]:
    config: EvaluationConfig = loaded["config"]
    if config.llm is None:
        hint = "llm: {} in the config has the answers judged, by gpt-4o-mini and the key in OPENAI_API_KEY."
        yield Check("", "note", "judged metrics are off, as no model judges", hint)
        return
    models = run_models(config)
    judges = wanted_judges(config, has_embeddings=models.embedding is not None)
    for purpose, name in models.names().items():
        yield _good(f"{name} for {purpose}")
    yield _good(f"judged: {', '.join(judge.key for judge in judges)}")
    if not examined.asks_models:
        yield Check("", "note", "whether the models answer was not tried", "Add --ask-models: one tiny request each.")
        return

    async def ask() -> list[tuple[str, float | None]]:
        costs: list[tuple[str, float | None]] = []
        try:
            if models.generation is not None:
                asked = await models.generation.aask("Answer with one word.", "Say yes.", TinyAnswer)
                costs.append((models.generation.name, asked.cost))
            if models.embedding is not None:
                embedded = await models.embedding.aembed(["yes"])
                costs.append((models.embedding.name, embedded.cost))
        finally:
            for model in models.own:
                await model.aclose()
        return costs

    for name, cost in run_sync(ask):
        price = f"for {dollars(cost)}" if cost is not None else "and its price is not known"
        yield _good(f"{name} answers, {price}")
        if cost is None:
            yield Check("", "warning", f"{name} has no known price", "Add it to prices: in the config.")


def _output(examined: Examined) -> Iterator[Check]:
    if examined.output is None:
        yield Check("", "note", "no folder is named", "Give run --output DIR, or run: {output: runs} in the config.")
        return
    parent = examined.output.absolute()
    while not parent.exists():
        parent = parent.parent
    try:
        with tempfile.TemporaryDirectory(dir=parent, prefix=".graphrag-eval-lc-") as folder, FolderLock(Path(folder)):
            pass
    except OSError as problem:
        what = f"nothing can be written in {parent} ({problem.strerror or problem})"
        yield Check("", "error", what, "Give another folder, or mend its permissions.")
        return
    yield _good(f"runs can be written to {examined.output}")


def _answer(examined: Examined, loaded: Mapping[str, Any]) -> Iterator[Check]:
    templates: list[Template] = loaded["templates"] or []
    first = next((question for template in templates for question in template.get("questions") or ()), None)
    if first is None or examined.agent is None:
        yield Check("", "note", "there is no question to ask", "Mend what stands above.")
        return
    run = run_benchmark(
        examined.agent,
        templates,
        config=loaded["config"].model_copy(update={"llm": None, "gates": [], "custom_evaluations": None}),
        question_ids=[str(first["id"])],
        agent_key_env=examined.agent_key_env,
        input_fn=examined.input_fn,
        max_retries=0,
        progress=False,
    )
    for response in run.responses:
        if is_error(response):
            yield Check(
                "", "error", f"{first['id']}: {response.get('error')}", "Run it with --debug for the traceback."
            )
            continue
        steps = response.get("actual_steps") or []
        tokens = response.get(TOTAL_TOKENS)
        about = f"{counted(len(steps), 'step')}, {response.get(ELAPSED_SEC, 0):.1f} s"
        about += f", {tokens:,} tokens" if tokens is not None else ""
        yield _good(f"{first['id']} was answered: {about}")
        for warning in response.get("capture_warnings") or ():
            yield Check("", "warning", str(warning))
        if not steps:
            yield Check("", "warning", "no tool was called", "Steps that no callback tells are not seen.")
