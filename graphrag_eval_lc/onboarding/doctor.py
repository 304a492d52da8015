"""Checks everything that a run needs, and says for each part whether it is good, and otherwise how to fix it."""

import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from importlib.metadata import PackageNotFoundError, requires, version
from pathlib import Path
from platform import python_version
from typing import Final, Literal, NamedTuple

from packaging.requirements import Requirement

from graphrag_eval_lc.benchmark.agents import aload_agent
from graphrag_eval_lc.benchmark.ready_agents import Agent
from graphrag_eval_lc.benchmark.run_benchmark import run_benchmark
from graphrag_eval_lc.compare.gate_names import KnownMetrics, check_gates
from graphrag_eval_lc.config import EvaluationConfig, load_config
from graphrag_eval_lc.dataset import load_dataset
from graphrag_eval_lc.dataset.validation import validate_dataset
from graphrag_eval_lc.errors import GraphRAGEvalError
from graphrag_eval_lc.event_loop.loop import run_sync
from graphrag_eval_lc.judges.judging import wanted_judges
from graphrag_eval_lc.judges.model_interface import ClosedAnswer
from graphrag_eval_lc.judges.models import run_models
from graphrag_eval_lc.masking import masked_text
from graphrag_eval_lc.matching.step_views import StepViews
from graphrag_eval_lc.matching.unknown_tools import RECORDED_CALLS, reference_names
from graphrag_eval_lc.onboarding.tool_findings import tools_in
from graphrag_eval_lc.prices import dollars
from graphrag_eval_lc.records import Question, Template, is_error
from graphrag_eval_lc.registry.metrics import ELAPSED_SEC, TOTAL_TOKENS
from graphrag_eval_lc.registry.step_kinds import RETRIEVAL, names_that_fulfil
from graphrag_eval_lc.run_folder.folder import FolderLock
from graphrag_eval_lc.texts import counted, listed, shortened

Level = Literal["ok", "note", "warning", "error"]
_AREAS: Final = ("versions", "extras", "config", "agent", "dataset", "steps", "gates", "models", "output", "answer")
_PYTHONS: Final = ((3, 11), (3, 14))
_FIRST_SHOWN: Final = 3
_LONGEST: Final = 300
_PACKAGE: Final = "graphrag-eval-lc"
_DEBUG: Final = "Run it with --debug for the traceback."


class Check(NamedTuple):
    """The result of one check."""

    level: Level  # ok; note: good to know; warning: scores may suffer; error: a run would fail
    what: str
    hint: str = ""  # how to fix it; empty if there is nothing to fix
    area: str = ""  # what it concerns, such as versions or agent


class TinyAnswer(ClosedAnswer):
    """The answer to a tiny question, which only shows that the model answers."""

    word: str


@dataclass(slots=True)
class Examination:
    """The checks of what a run needs, each of which may use what those before it have loaded."""

    agent: str | None = None  # the agent's spec; None: unknown
    dataset: Path | None = None  # the dataset's path; None: unknown
    config: Path | None = None  # the config's path; None: the defaults
    output: Path | None = None  # the folder of runs; None: unknown
    agent_key_env: str | None = None  # the environment variable with the key of the agent's server
    input_fn: str | None = None  # the spec of a function that makes the agent's input
    asks_agent: bool = False  # whether the agent is asked the first question of the dataset, which may cost
    asks_models: bool = False  # whether each model of the judges gets one tiny request, which costs next to nothing
    _settings: EvaluationConfig = field(default_factory=EvaluationConfig, init=False)
    _templates: list[Template] = field(default_factory=list, init=False)
    _tools: list[str] = field(default_factory=list, init=False)

    def checks(self) -> Iterator[Check]:
        """Yield each result as soon as it is known. If a check breaks, the others still run."""
        for area in _AREAS:
            try:
                found: Iterator[Check] = getattr(self, f"_check_{area}")()
                for level, what, hint, _ in found:
                    yield Check(level, masked_text(what), masked_text(hint), area)
            except GraphRAGEvalError as problem:
                hint = problem.hint or ""
                what = str(problem).removesuffix(f" {hint}") if hint else str(problem)
                yield Check("error", masked_text(what), masked_text(hint), area)
            except Exception as problem:
                what = f"this check failed with {type(problem).__name__}: {shortened(str(problem), _LONGEST)}"
                yield Check("error", masked_text(what), _DEBUG, area)

    def _check_versions(self) -> Iterator[Check]:
        low, high = _PYTHONS
        is_supported = low <= sys.version_info[:2] <= high
        hint = "" if is_supported else f"Use Python {low[0]}.{low[1]} to {high[0]}.{high[1]}."
        yield Check("ok" if is_supported else "error", f"Python {python_version()}", hint)
        core = requirements_by_extra().get("", [])
        for package in core:
            if installed_version(package.name) is None:
                yield Check("error", f"{package.name} is not installed", _install(package))
        yield from _untested(core, "this package")
        if core and all(map(is_tested, core)):
            shown = [f"{each.name} {installed_version(each.name)}" for each in core if each.name.startswith("lang")]
            others = counted(len(core) - len(shown), "further package")
            yield Check("ok", f"{', '.join(shown)} and {others} as tested")

    def _check_extras(self) -> Iterator[Check]:
        extras = {extra: packages for extra, packages in requirements_by_extra().items() if extra}
        missing = {
            extra: list(dict.fromkeys(each.name for each in packages if installed_version(each.name) is None))
            for extra, packages in extras.items()
        }
        complete = [extra for extra, names in missing.items() if not names]
        lacking = {extra: names for extra, names in missing.items() if names}
        if complete:
            yield Check("ok", f"installed: {', '.join(complete)}")
        if lacking:
            about = "; ".join(f"[{extra}] lacks {', '.join(names)}" for extra, names in lacking.items())
            hint = f"Only what uses them needs them. Run: pip install 'graphrag-eval-lc[{','.join(lacking)}]'"
            yield Check("note", about, hint)
        for extra in complete:
            yield from _untested(extras[extra], f"[{extra}]")

    def _check_config(self) -> Iterator[Check]:
        if self.config is None:
            yield Check("note", "there is none, so that the defaults count", "graphrag-eval-lc init writes one.")
            return
        self._settings = load_config(self.config)
        yield Check("ok", str(self.config))

    def _check_agent(self) -> Iterator[Check]:
        spec = self.agent
        if spec is None:
            yield Check("error", "none is named", "Add --agent my_agent.py:agent, or run: {agent: …} to the config.")
            return

        async def load() -> tuple[Agent, str | None]:
            agent = await aload_agent(spec, has_input_fn=self.input_fn is not None, key_variable=self.agent_key_env)
            self._tools = list(tools_in(agent.runnable))
            return agent, await agent.aclose()

        agent, problem = run_sync(load)
        accepts = "a question's text" if agent.takes == "text" else "messages"
        yield Check("ok", f"{spec} takes {accepts}{f'; tools: {listed(self._tools)}' if self._tools else ''}")
        for warning in (*agent.warnings, *([] if problem is None else [problem])):
            yield Check("warning", warning)
        documents = self._settings.capture.retrieval_documents
        named = [("steps.names", name) for name in self._settings.steps.names]
        named += [("capture.retrieval_documents", name) for name in ([] if isinstance(documents, bool) else documents)]
        for key, name in named if self._tools else ():
            if name not in self._tools:
                near = get_close_matches(name, self._tools, n=1)
                hint = f"Did you mean {near[0]}?" if near else f"Its tools are {listed(self._tools)}."
                yield Check("warning", f"{key} names {name}, which is not a visible tool of the agent", hint)

    def _check_dataset(self) -> Iterator[Check]:
        path = self.dataset
        if path is None:
            yield Check("error", "none is named", "Name it, or add run: {dataset: questions.yaml} to the config.")
            return
        problems = validate_dataset(path, config=self._settings)
        errors = [each for each in problems if each.severity == "error"]
        for each in errors[:_FIRST_SHOWN]:
            yield Check("error", str(each).removesuffix(f" {each.hint}"), each.hint)
        if len(errors) > _FIRST_SHOWN:
            more = counted(len(errors) - _FIRST_SHOWN, "more problem")
            yield Check("error", more, f"graphrag-eval-lc validate {path} shows all.")
        if errors:
            return
        self._templates = load_dataset(path)
        questions = self._questions()
        about = f"{counted(len(questions), 'question')} in {counted(len(self._templates), 'template')}"
        yield Check("ok", f"{path}: {about}") if questions else Check("error", about, "Write a question.")
        if problems:
            hint = f"graphrag-eval-lc validate {path} shows them."
            yield Check("warning", f"{counted(len(problems), 'warning')} about it", hint)
        if drafts := sum(bool(question.get("draft")) for question in questions):
            what = f"{counted(drafts, 'question is a draft', 'questions are drafts')} of what the agent did"
            yield Check("note", what, "Check each, then remove draft: true.")
        if without := sum(not question.get("reference_steps") for question in questions):
            has = counted(without, "question has", "questions have")
            hint = "graphrag-eval-lc dataset draft drafts them from a run."
            yield Check("note", f"{has} no reference steps, so that no steps are scored", hint)

    def _check_steps(self) -> Iterator[Check]:
        """Report the reference steps that no tool of the agent can match, if its tools are visible."""
        if not self._templates or not self._tools:
            return
        views = StepViews(self._settings.steps, self._settings.sparql, self._settings.retrieval)
        names = reference_names(self._templates)
        matching = {name: [tool for tool in self._tools if views.may_fulfil(tool, name)] for name in names}
        spare = sorted(set(self._tools).difference(*matching.values()))
        for name in (each for each, found in matching.items() if not found):
            needed = names_that_fulfil(name)
            target = name if name in needed else min(needed)
            tool = spare[0] if len(spare) == 1 else "TOOL"
            who = f"{tool} is this tool" if len(spare) == 1 else "a tool does so under another name"
            hint = f"If {who}, write steps: {{names: {{{tool}: {target}}}}} in the config."
            if name == RETRIEVAL:
                hint = f"Name the tool that searches documents: retrieval: {{steps: [{tool}]}} in the config."
            others = f" Tools without a reference step: {listed(spare)}." if len(spare) > 1 else ""
            yield Check("warning", f"no visible tool of the agent matches reference steps called {name}", hint + others)
        if names and all(matching.values()):
            shown = [name if found == [name] else f"{name} by {listed(found)}" for name, found in matching.items()]
            yield Check("ok", f"a tool matches each kind of reference step: {'; '.join(shown)}")

    def _check_gates(self) -> Iterator[Check]:
        gates = self._settings.gates
        if not gates:
            yield Check("note", "there are none", "A run fails a job only if gates: in the config say so.")
            return
        ids = [str(template["template_id"]) for template in self._templates]
        known = KnownMetrics.of(self._settings, (), has_llm=False, has_embeddings=False)
        checked = gates if ids else [gate for gate in gates if gate.template is None]
        for doubt in check_gates(checked, known, ids, of_config=True):
            yield Check("note", doubt)
        yield Check("ok", counted(len(gates), "gate"))

    def _check_models(self) -> Iterator[Check]:
        if self._settings.llm is None:
            hint = "llm: {} in the config has the answers judged, by gpt-4o-mini and the key in OPENAI_API_KEY."
            yield Check("note", "judged metrics are off, as no model judges", hint)
            return
        models = run_models(self._settings)
        judges = wanted_judges(self._settings, has_embeddings=models.embedding is not None)
        for purpose, name in models.names().items():
            yield Check("ok", f"{name} for {purpose}")
        yield Check("ok", f"judged: {', '.join(judge.key for judge in judges)}")
        if not self.asks_models:
            yield Check(
                "note", "the models were not asked whether they answer", "Add --ask-models: one tiny request each."
            )
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
            yield Check("ok", f"{name} answers, {price}")
            if cost is None:
                yield Check("warning", f"{name} has no known price", "Add it to prices: in the config.")

    def _check_output(self) -> Iterator[Check]:
        if self.output is None:
            yield Check("note", "no folder is named", "Give run --output DIR, or run: {output: runs} in the config.")
            return
        absolute = self.output.absolute()
        parent = next(each for each in (absolute, *absolute.parents) if each.exists())
        try:
            with (
                tempfile.TemporaryDirectory(dir=parent, prefix=".graphrag-eval-lc-") as folder,
                FolderLock(Path(folder)),
            ):
                pass
        except OSError as problem:
            what = f"nothing can be written in {parent} ({problem.strerror or problem})"
            yield Check("error", what, "Give another folder, or fix its permissions.")
            return
        yield Check("ok", f"runs can be written to {self.output}")

    def _check_answer(self) -> Iterator[Check]:
        if not self.asks_agent:
            return
        first = next(iter(self._questions()), None)
        if first is None or self.agent is None:
            yield Check("note", "the dataset has no question to ask", "Fix the errors above.")
            return
        run = run_benchmark(
            self.agent,
            self._templates,
            config=self._settings.model_copy(update={"llm": None, "gates": [], "custom_evaluations": None}),
            question_ids=[str(first["id"])],
            agent_key_env=self.agent_key_env,
            input_fn=self.input_fn,
            max_retries=0,
            progress=False,
        )
        for response in run.responses:
            if is_error(response):
                yield Check("error", f"{first['id']}: {response.get('error')}", _DEBUG)
                continue
            steps, tokens = response.get("actual_steps") or [], response.get(TOTAL_TOKENS)
            about = f"{counted(len(steps), 'step')}, {response.get(ELAPSED_SEC, 0):.1f} s"
            yield Check("ok", f"{first['id']} was answered: {about}{'' if tokens is None else f', {tokens:,} tokens'}")
            for warning in response.get("capture_warnings") or ():
                yield Check("warning", str(warning))
            if not steps:
                yield Check("warning", "no tool was called", f"{RECORDED_CALLS[0].upper()}{RECORDED_CALLS[1:]}.")

    def _questions(self) -> list[Question]:
        return [question for template in self._templates for question in template.get("questions") or ()]


# --- installed packages ----------------------------------------------------------------------------------------------


def requirements_by_extra() -> Mapping[str, list[Requirement]]:
    """Return the packages that each extra needs, those of the core under ``""``.

    The mapping is empty if this package runs without being installed.
    """
    found: dict[str, list[Requirement]] = {}
    try:
        texts = requires(_PACKAGE) or []
    except PackageNotFoundError:
        return found
    for each in map(Requirement, texts):
        is_core = each.marker is None or each.marker.evaluate({"extra": ""})
        extra = "" if is_core else str(each.marker).rpartition("extra == ")[2].strip("\"' ()")
        if each.name != _PACKAGE and extra != "all":
            found.setdefault(extra, []).append(each)
    return found


def installed_version(name: str) -> str | None:
    """Return the version of a package; None if it is not installed."""
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def is_tested(package: Requirement) -> bool:
    """Return whether the installed version is within the tested bounds; False if the package is not installed."""
    installed = installed_version(package.name)
    return installed is not None and package.specifier.contains(installed, prereleases=True)


def _untested(packages: Sequence[Requirement], needed_by: str) -> Iterator[Check]:
    for package in packages:
        installed = installed_version(package.name)
        if installed is not None and not is_tested(package):
            yield Check("warning", f"{package.name} {installed} was not tested with {needed_by}", _install(package))


def _install(package: Requirement) -> str:
    return f"Run: pip install '{package.name}{package.specifier}'"
