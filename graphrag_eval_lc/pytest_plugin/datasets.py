"""Reads the datasets that marked tests name, each once, and makes a test of each question."""

import copy
import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from os import PathLike
from pathlib import Path
from typing import Any, cast

import pytest

from graphrag_eval_lc.benchmark.option_fields import refuse_conflicts
from graphrag_eval_lc.benchmark.score_options import CheckedScoreOptions
from graphrag_eval_lc.compare.gates import gates_of_option
from graphrag_eval_lc.config import ConfigSource, EvaluationConfig, GateConfig
from graphrag_eval_lc.dataset.loading import DatasetSource
from graphrag_eval_lc.dataset.selection import Selection
from graphrag_eval_lc.dataset.validation import check_dataset
from graphrag_eval_lc.errors import GraphRAGEvalError, OptionError
from graphrag_eval_lc.pytest_plugin.settings import Settings, settings_of
from graphrag_eval_lc.records import Question, Template
from graphrag_eval_lc.texts import visible

_QUESTION = "graphrag_question"
_EXAMPLE = '@pytest.mark.graphrag_dataset("qa.yaml")'
_SCORING = ("config", "evaluators", "llm", "embeddings")
_KEYWORDS = (*_SCORING, "templates", "questions", "limit", "sample", "seed", "name")


@dataclass(frozen=True, slots=True, eq=False)
class MarkedDataset:
    """The dataset of a marker."""

    path: Path | None  # its file; None if it was made in Python
    templates: Sequence[Template]
    selected: Sequence[tuple[Template, Question]]  # the questions that the marker selects, with their templates
    selection: Selection
    # how responses are scored, as options of run_benchmark: the loaded config, and the marker's evaluators and models
    scoring: Mapping[str, Any]
    name: str | None  # the name of the run's folder, if the marker has one

    @property
    def config(self) -> EvaluationConfig:
        """The configuration, with its gates."""
        return cast("EvaluationConfig", self.scoring["config"])

    @property
    def source(self) -> DatasetSource:
        """The path, or the templates."""
        return self.templates if self.path is None else self.path


@dataclass(frozen=True, slots=True, eq=False)
class AskedQuestion:
    """The question of one test."""

    dataset: MarkedDataset
    template: Template
    question: Question

    @property
    def id(self) -> str:
        """The text in brackets after the test's name: template and question."""
        return f"{self.template['template_id']}/{self.question['id']}"

    def as_dict(self) -> dict[str, Any]:
        """Return a copy of the question, with its template's id."""
        own = cast("dict[str, Any]", copy.deepcopy(self.question))
        return {"template_id": self.template["template_id"], **own}

    def alone(self) -> Template:
        """Return the template with only this question."""
        return cast("Template", {**self.template, "questions": [self.question]})


@dataclass(frozen=True, slots=True)
class MarkedRun:
    """The run that a test belongs to: all questions of one test function with one set of its other parameters."""

    test: str  # the test's node id, without brackets
    variant: str  # its other parameters, as in the test's brackets; empty if it has none
    dataset: MarkedDataset

    @property
    def key(self) -> str:
        """A key that is unique in the session, and the same in each process."""
        return hashlib.sha256(f"{self.test}[{self.variant}]".encode("utf-8", "backslashreplace")).hexdigest()[:16]

    @property
    def name(self) -> str:
        """The name in the marker, otherwise that of the test, with the variant."""
        return "-".join(filter(None, (self.dataset.name or self.test.rpartition("::")[2], self.variant)))


_Read = dict[Path, tuple[EvaluationConfig, Sequence[Template]]]
_READ = pytest.StashKey[_Read]()


def parametrize(metafunc: pytest.Metafunc, marker: pytest.Mark | None) -> None:
    """Make a test of each question that a marker selects."""
    has_question = _QUESTION in metafunc.fixturenames
    own = [each for each in metafunc.definition.own_markers if each.name == "graphrag_dataset"]
    if not has_question and not own:
        return  # the marker is on its module or class, and this test does not use a question
    try:
        if marker is None:
            what = f"the test takes {_QUESTION} or graphrag_ask, and is marked with no dataset"
            raise OptionError(what, hint=f"Write {_EXAMPLE} before it.")
        if not has_question:
            what = "the test is marked with a dataset, and does not take graphrag_question or graphrag_ask"
            raise OptionError(what, hint="Let it take one of them.")
        if len(own) > 1:
            raise OptionError("the test is marked with two datasets", hint="Write a test for each.")
        dataset = _marked(metafunc, marker)
    except GraphRAGEvalError as problem:
        raise pytest.Collector.CollectError(f"{metafunc.definition.nodeid}: {problem}") from None
    cases = [AskedQuestion(dataset, template, question) for template, question in dataset.selected]
    metafunc.parametrize(_QUESTION, cases, indirect=True, ids=[case.id for case in cases])


def asked_question(request: pytest.FixtureRequest) -> AskedQuestion:
    """Return the question of a test, from its fixture."""
    question = getattr(request, "param", None)
    if not isinstance(question, AskedQuestion):
        pytest.fail(f"no question was passed: write {_EXAMPLE} before the test, which takes the fixture", pytrace=False)
    return question


def question_of(item: pytest.Item) -> AskedQuestion | None:
    """Return the question of a test; None if it has none."""
    callspec = getattr(item, "callspec", None)
    question = None if callspec is None else callspec.params.get(_QUESTION)
    return question if isinstance(question, AskedQuestion) else None


def run_of(item: pytest.Item, question: AskedQuestion) -> MarkedRun:
    """Return the run that a test with a question belongs to."""
    whole = str(item.callspec.id)  # type: ignore[attr-defined]
    escaped = question.id.encode("unicode_escape").decode("ascii")  # as pytest escapes other characters
    parts = (part for text in (question.id, escaped) for part in (f"-{text}", f"{text}-") if part in whole)
    part = next(parts, None)
    variant = "" if part is None else whole.replace(part, "", 1)
    return MarkedRun(item.nodeid.removesuffix(f"[{whole}]"), variant, question.dataset)


def gates_given(settings: Settings) -> list[GateConfig]:
    """Return the gates of the options."""
    return [*gates_of_option("fail-under", settings.fail_under), *gates_of_option("fail-over", settings.fail_over)]


def _marked(metafunc: pytest.Metafunc, marker: pytest.Mark) -> MarkedDataset:
    settings = settings_of(metafunc.config)
    given = dict(marker.kwargs)
    if len(marker.args) != 1 or not isinstance(marker.args[0], str | PathLike | Sequence):
        raise OptionError("graphrag_dataset takes one dataset: a path, or loaded templates", hint=f"Write {_EXAMPLE}.")
    _refuse_unknown(given)
    refuse_conflicts([name for name, value in given.items() if value is not None], _KEYWORDS)
    folder = metafunc.definition.path.parent
    source = _config_source(given.get("config"), folder, metafunc.config) or settings.config
    scoring = {name: given[name] for name in _SCORING if name in given} | {"config": source}
    config = CheckedScoreOptions(**scoring).config
    path, templates = _templates(marker.args[0], folder, metafunc.config, config, source)
    selection = Selection(
        limit=given.get("limit"),
        template_ids=given.get("templates", ()),
        question_ids=given.get("questions", ()),
        sample=given.get("sample"),
        seed=given.get("seed"),
    )
    try:
        selected = selection.apply(templates)
    except GraphRAGEvalError as problem:
        problem.path = problem.path or path
        raise
    _check_gates(scoring, settings, templates)
    return MarkedDataset(path, templates, selected, selection, {**scoring, "config": config}, given.get("name"))


def _refuse_unknown(given: Mapping[str, Any]) -> None:
    for name in given:
        if name not in _KEYWORDS:
            near = get_close_matches(name, _KEYWORDS, n=1, cutoff=0.5)
            hint = f"Did you mean {near[0]}?" if near else f"It takes {', '.join(_KEYWORDS)}."
            raise OptionError(f"graphrag_dataset takes no keyword {name}", hint=hint)
    for name in ("limit", "sample", "seed"):
        number = given.get(name)
        if number is not None and (isinstance(number, bool) or not isinstance(number, int)):
            raise OptionError(f"{name} cannot be {number!r:.80}", key=name, hint="Give a whole number.")
    if given.get("sample") is not None and given.get("seed") is None:
        hint = "Add seed=1, so that each process of pytest-xdist draws the same questions."
        raise OptionError("a sample needs a seed", key="sample", hint=hint)
    folder = given.get("name")
    if folder is not None and not (isinstance(folder, str) and folder.strip()):
        raise OptionError(f"name cannot be {folder!r:.80}", key="name", hint="Give a text.")


def _templates(
    source: Any, folder: Path, config: pytest.Config, scored_by: EvaluationConfig, config_source: Any
) -> tuple[Path | None, Sequence[Template]]:
    """Return the file and the templates of a dataset; for each config it is read and checked once in a session."""
    path = _found(source, folder, config) if isinstance(source, str | PathLike) else None
    known = config.stash.setdefault(_READ, {})
    if path is not None and path in known and known[path][0] == scored_by:
        return path, known[path][1]
    # The agent may register step kinds when it is loaded; then the question is checked again before it is asked.
    read = check_dataset(source if path is None else path, scored_by, config_source).usable(lacks_kinds=True)
    for note in read.notes:
        config.issue_config_time_warning(pytest.PytestWarning(visible(note)), stacklevel=2)
    if path is not None:
        known[path] = scored_by, read.templates
    return path, read.templates


def _found(source: str | PathLike[str], folder: Path, config: pytest.Config) -> Path:
    """Return a file whose path is relative to the folder of the test, or otherwise to pytest's root folder."""
    places = [folder / source, config.rootpath / source]
    return next((place for place in places if place.exists()), places[0])


def _config_source(source: Any, folder: Path, config: pytest.Config) -> ConfigSource:
    return _found(source, folder, config) if isinstance(source, str | PathLike) else source


def _check_gates(scoring: Mapping[str, Any], settings: Settings, templates: Sequence[Template]) -> None:
    """Refuse gates on unknown metrics before anything is asked.

    A gate in pytest's options may be about a template of another dataset, so templates are checked when all are known.
    """
    ids = {str(template["template_id"]) for template in templates}
    here = [gate for gate in gates_given(settings) if gate.template is None or gate.template in ids]
    options = CheckedScoreOptions(**scoring, gates=here)
    if settings.is_given:
        options.check_gates(templates)
