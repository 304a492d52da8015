"""Reads gates in any form (options, texts, mappings, a config), and checks them on a run."""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, Literal, get_args

from pydantic import ValidationError

from graphrag_eval_lc.compare.gate_checks import Gate, GateResult, check
from graphrag_eval_lc.compare.gate_names import (
    KnownMetrics,
    check_condition,
    check_direction,
    check_gates,
    metric_and_statistic,
)
from graphrag_eval_lc.compare.gate_values import GateValues
from graphrag_eval_lc.compare.runs import RunResults, RunSource, run_results
from graphrag_eval_lc.config import ConfigSource, EvaluationConfig, GateConfig, load_config
from graphrag_eval_lc.errors import ConfigError, OptionError, RunFolderError
from graphrag_eval_lc.registry import metric_spec
from graphrag_eval_lc.registry.custom_metrics import recorded_only_here
from graphrag_eval_lc.registry.metrics import MAIN_METRIC
from graphrag_eval_lc.run_folder import RUN_FILE

Gates = str | Mapping[str, float] | Iterable[str | Mapping[str, Any] | GateConfig] | EvaluationConfig | None
"""Gates as texts, as mappings or sections of the config, or as the least mean by metric; or a config with gates."""

GateOption = Literal["fail-under", "fail-over", "max-drop", "max-drop-per-template", "max-lost", "fail-on-regression"]
DEFAULT_MAX_DROP: Final = 0.05

# The right form of each option's value.
_EXAMPLES: Final[Mapping[GateOption, str]] = {
    "fail-under": f"--fail-under {MAIN_METRIC}=0.9",
    "fail-over": "--fail-over elapsed_sec.p95=30, or in a comparison --fail-over total_tokens=+10%",
    "max-drop": f"--max-drop 0.05 or --max-drop {MAIN_METRIC}=0.05, with a drop from 0 to 1",
    "max-drop-per-template": f"--max-drop-per-template 0.2 or … {MAIN_METRIC}=0.2, with a drop from 0 to 1",
    "max-lost": "--max-lost 2, --max-lost 2/template (in each) or --max-lost 1/notes (in notes)",
    "fail-on-regression": "--fail-on-regression, or --fail-on-regression=0.05 with a drop from 0 to 1",
}
_OPTION: Final = re.compile(r"\s*--(?P<option>[a-z-]+)(?:[ =]\s*(?P<value>.+))?", re.DOTALL)
_LOST: Final = re.compile(r"\s*(?P<number>[0-9]{1,9})(/(?P<template>.*\S))?\s*", re.DOTALL)
_NUMBER: Final = re.compile(r"\s*-?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][-+]?[0-9]+)?\s*")
_NO_NAME: Final = re.compile(r"[<>\s]")


def gates_of_option(
    option: GateOption, texts: Iterable[str], *, confident: bool = False, has_baseline: bool = False
) -> list[GateConfig]:
    """Read the values of a command-line option, in the form ``[TEMPLATE/]METRIC[.STATISTIC]=VALUE``.

    A drop may leave out the metric, and ``max-lost`` has the form ``NUMBER[/TEMPLATE]``. With ``confident`` only
    certain drops fail. With ``has_baseline`` an increase such as ``total_tokens=+10%`` is allowed.

    Raises:
        OptionError: A text has another form, sets the same bound twice, or needs a baseline that is missing.

    Example:
        >>> [(gate.condition, gate.template) for gate in gates_of_option("max-lost", ["5", "2/template", "1/notes"])]
        [('max_lost', None), ('max_lost_per_template', None), ('max_lost', 'notes')]
    """
    gates: dict[tuple[Any, ...], GateConfig] = {}
    for text in texts:
        gate = _gate_of_option(option, text, confident=confident)
        if option == "fail-over" and gate.needs_baseline and not has_baseline:
            hint = f"Compare two runs: compare RUN_A RUN_B --fail-over {text}; or set a fixed bound such as 30."
            raise OptionError(f"{text!r} bounds the increase over a baseline, and one run has no baseline", hint=hint)
        key = (gate.metric, gate.template, gate.condition, gate.needs_baseline)
        if key in gates:
            of_template = "" if gate.template is None else f" of the template {gate.template}"
            what = f"--{option} bounds {gate.metric or 'the main metric'}{of_template} twice"
            raise OptionError(what, hint="Leave one of them out.")
        gates[key] = gate
    return list(gates.values())


def _gate_of_option(option: GateOption, text: str, *, confident: bool) -> GateConfig:
    if option == "max-lost":
        if (found := _LOST.fullmatch(text)) is None:
            raise _wrong(option, text)
        number, template = int(found["number"]), found["template"]
        is_of_each = template == "template"
        return (
            GateConfig(max_lost_per_template=number) if is_of_each else GateConfig(max_lost=number, template=template)
        )
    condition = {"fail-under": "under", "fail-over": "over", "fail-on-regression": "regression"}.get(option)
    is_of_mean = option in ("fail-under", "fail-over")
    template, metric, value = _parts(option, text) if is_of_mean or "=" in text else (None, None, text)
    if option == "max-drop-per-template" and template is not None:
        what = f"{text!r} names a template, and --max-drop-per-template holds in each"
        raise OptionError(what, hint=f"Write --max-drop {text}, or leave {template}/ out.")
    bound = float(value) if _NUMBER.fullmatch(value) else None
    gate: dict[str, Any] = {"metric": metric, "template": template, "confident": confident and not is_of_mean}
    gate[condition or option.replace("-", "_")] = value if option == "fail-over" and value.startswith("+") else bound
    try:
        if is_of_mean or (bound is not None and 0 <= bound <= 1):
            return GateConfig(**gate)
    except ValidationError:
        pass
    raise _wrong(option, text)


def _parts(option: GateOption, text: str) -> tuple[str | None, str, str]:
    """Return template, metric and value: the value at the last equals sign, the metric at the last slash before it."""
    name, _, value = text.rpartition("=")
    template, slash, metric = name.rpartition("/")
    metric, value = metric.strip(), value.strip()
    # Otherwise steps_score>=0.9 would be about a metric "steps_score>".
    if not metric or not value or _NO_NAME.search(metric) or (slash and not template):
        raise _wrong(option, text)
    return template if slash else None, metric, value


def _wrong(option: GateOption, text: str) -> OptionError:
    return OptionError(f"{text!r} is not a value of --{option}", hint=f"Write {_EXAMPLES[option]}.")


def read_gates(given: Gates, *, has_baseline: bool = False) -> list[GateConfig]:
    """Read gates in any of their forms.

    Args:
        given: A list of texts such as ``steps_score=0.9`` (the lowest mean that passes; the highest if lower is
            better), command-line options such as ``--max-lost 2``, mappings as in the config's section ``gates``, or
            ``GateConfig``; or a mapping of metrics to the lowest mean; or a configuration. None: no gates.
        has_baseline: Whether gates that compare with a baseline can be checked.

    Raises:
        OptionError: One of them is not a gate, bounds its metric on the wrong side, or lacks the baseline it needs.

    Example:
        >>> [(gate.metric, gate.condition) for gate in read_gates(["notes/steps_score=0.8", "elapsed_sec.p95=30"])]
        [('steps_score', 'under'), ('elapsed_sec.p95', 'over')]
        >>> [gate.condition for gate in read_gates(["--max-lost 2", "total_tokens=+10%"], has_baseline=True)]
        ['max_lost', 'over']
    """
    listed: list[Any] = [] if given is None else [given]
    if isinstance(given, EvaluationConfig):
        listed = list(given.gates)
    elif isinstance(given, Mapping):
        listed = [{"metric": str(metric), "under": required} for metric, required in given.items()]
    elif isinstance(given, Iterable) and not isinstance(given, str):
        listed = list(given)
    gates = [_gate_of(each, has_baseline) for each in listed]
    for gate in gates:
        check_direction(gate, only_declared=True)
        if gate.needs_baseline and not has_baseline:
            what = f"{gate.condition} compares a run with a baseline, and one run has no baseline"
            raise OptionError(what, hint="Compare it with another run: compare RUN_A RUN_B.")
    return gates


def _gate_of(given: object, has_baseline: bool) -> GateConfig:
    if isinstance(given, GateConfig):
        return given
    if isinstance(given, str):
        return _gate_of_text(given, has_baseline)
    if not isinstance(given, Mapping):
        hint = 'Give a text such as "steps_score=0.9", or a mapping such as {"metric": "steps_score", "under": 0.9}.'
        raise OptionError(f"{given!r:.80} is not a gate", hint=hint)
    try:
        return load_config({"gates": [dict(given)]}).gates[0]
    except ConfigError as problem:
        key = str(problem.key).removeprefix("gates.0").lstrip(".") or None
        what = f"{dict(given)!r:.120} is not a gate: {problem.what}"
        raise OptionError(what, key=key, hint=problem.hint) from None


def _gate_of_text(text: str, has_baseline: bool) -> GateConfig:
    if (found := _OPTION.fullmatch(text)) is None:
        _, name, value = _parts("fail-under", text)
        metric, _ = metric_and_statistic(name)
        is_upper = metric_spec(metric).lower_is_better or (has_baseline and value.startswith("+"))
        option: GateOption = "fail-over" if is_upper else "fail-under"
    elif (named := next((each for each in get_args(GateOption) if each == found["option"]), None)) is None:
        raise OptionError(f"{text!r:.80} is not a gate", hint=f"The options of gates are --{', --'.join(_EXAMPLES)}.")
    else:
        option, text = named, found["value"] or (str(DEFAULT_MAX_DROP) if named == "fail-on-regression" else "")
    return gates_of_option(option, [text], has_baseline=has_baseline)[0]


@recorded_only_here()
def gate_results(run: RunSource, gates: Gates = None, config: ConfigSource = None) -> list[GateResult]:
    """Check gates on a run, and return the result of each.

    Each question counts once, with the mean of its repeats. The scores of failed samples count as 0; what they spent
    counts as it is. Statistics other than the mean are over samples (a question asked three times has three):
    ``median``, ``p95`` (interpolated), ``min``, ``max``, and ``sum``, which includes what failed attempts spent. A
    metric that no question has fails its gate.

    Args:
        run: The folder of a run, a BenchmarkRun, or results.
        gates: Texts such as ``steps_score=0.9``, ``notes/steps_score=0.8`` and ``elapsed_sec.p95=30`` (the lowest value
            that passes; the highest if lower is better), mappings as in the config's section ``gates``, or a mapping
            of metrics to the lowest mean. None: the gates of the run's configuration that need no baseline.
        config: The configuration of a run without a folder, which has no run.json.

    Raises:
        RunFolderError: The folder cannot be read.
        OptionError: A gate bounds a metric on the wrong side, or needs a baseline.

    Example:
        >>> results = [
        ...     {"template_id": "t", "question_id": "q1", "status": "success", "steps_score": 1.0},
        ...     {"template_id": "t", "question_id": "q2", "status": "error", "steps_score": 0.0},
        ... ]
        >>> for gate in gate_results(results, {"steps_score": 0.9, "answer_f1": 0.8}):
        ...     print(gate)
        steps_score 0.500 < 0.9 (1 failed sample counts as 0)
        answer_f1 was not measured (≥ 0.8 is required)
    """
    results = run_results(run, config)
    if gates is None:
        configured = gates_in(results) if config is None else load_config(config).gates
        wanted = [gate for gate in configured if not gate.needs_baseline]
    else:
        wanted = read_gates(gates)
    if not wanted:
        return []
    values = GateValues(results, [gate.metric or MAIN_METRIC for gate in wanted])
    for gate in wanted:  # checked again, because run.json may declare metrics
        metric, _ = metric_and_statistic(gate.metric or MAIN_METRIC)
        check_direction(gate, only_declared=not values.numbers.has(metric))
    return [check(gate, values) for gate in wanted]


def gates_in(results: RunResults, *, checks_bounds: bool = False) -> list[Gate]:
    """Return the gates in the configuration of a run.

    Raises:
        RunFolderError: run.json has broken gates; or with ``checks_bounds`` a bound is on the wrong side, or every run
            would pass or fail it.
    """
    if not (listed := (results.section("config") or {}).get("gates")):
        return []
    try:
        gates = load_config({"gates": listed}).gates
        for index, gate in enumerate(gates) if checks_bounds else ():
            check_direction(gate, index)
            check_condition(gate, index)
    except ConfigError as problem:
        path = None if results.path is None else results.path / RUN_FILE
        raise RunFolderError(problem.what, path=path, key=f"config.{problem.key}", hint=problem.hint) from problem
    return gates


def check_names(gates: Sequence[Gate], baseline: GateValues, runs: Sequence[GateValues], *, of_config: bool) -> None:
    """Check the names and bounds of gates against the metrics and templates of runs and their baseline.

    Raises:
        ConfigError: A gate of a configuration (``of_config``) names a metric or a template that the runs do not have.
        OptionError: The same of another gate.
    """
    all_runs = [values.run for values in (baseline, *runs)]
    measured = [metric for run in all_runs for metric in run.numbers.measured()]
    known = KnownMetrics.of_runs([run.results.config() for run in all_runs], measured)
    templates = [question.template_id for run in all_runs for question in run.numbers.questions.values()]
    check_gates(gates, known, templates, of_config=of_config, where="the runs have")
