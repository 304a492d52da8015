"""What scores a run beside its config: models, evaluators, matchers and plugins, and how run.json names them."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from graphrag_eval_lc.benchmark.agent_specs import named_by
from graphrag_eval_lc.errors import OptionError
from graphrag_eval_lc.judges.custom_functions import CustomFunction, MetricFunction, all_functions
from graphrag_eval_lc.matching.matchers import custom_matchers
from graphrag_eval_lc.registry.custom_metrics import declaration
from graphrag_eval_lc.registry.plugin_records import plugin_records
from graphrag_eval_lc.registry.plugins import loaded_plugin, plugin_of, spec_of
from graphrag_eval_lc.registry.step_kinds import MatcherKey, registered_name

if TYPE_CHECKING:
    from graphrag_eval_lc.judges.judging import Judges

Evaluator = Callable[..., Any]


def load_matchers(modules: Iterable[str]) -> None:
    """Load modules that register matchers.

    Args:
        modules: ``package.module`` or ``path/to/file.py``, named by whoever starts the command.

    Raises:
        AgentError: One of them does not exist, or fails to load.
        OptionError: One of them registers nothing.
    """
    for module in modules:
        loaded_plugin(module, "--matchers")
        if not custom_matchers():
            raise OptionError(
                f"--matchers {module} registers no matcher",
                hint="Let it call register_matcher of graphrag_eval_lc.matching when it is loaded.",
            )


def evaluators_of(given: Any) -> tuple[Evaluator, ...]:
    """Return evaluators as functions; those that are given as specs are loaded.

    Raises:
        OptionError: It is no list of functions and specs.
        AgentError: What a spec names cannot be loaded.
    """
    if given is None:
        return ()
    if not isinstance(given, str | bytes | Mapping) and isinstance(given, Iterable):
        found = tuple(named_by(each, "an evaluator") if isinstance(each, str) else each for each in given)
        if all(map(callable, found)):
            return found
    raise OptionError(f"evaluators cannot be {given!r}", key="evaluators", hint="Give a list of functions.")


def scored_with(
    evaluators: Iterable[Evaluator | CustomFunction], judges: "Judges | None" = None
) -> dict[str, list[dict[str, Any]]]:
    """Return the keys ``matchers``, ``evaluators`` and ``plugins`` of run.json.

    Args:
        evaluators: The functions that are passed.
        judges: Who called the functions; given at the end, for which metrics each of them gave.

    Returns:
        ``matchers``: those that users registered, with ``name`` and ``media_type`` (where they are for one) and the
        spec of the ``function``; ``evaluators``: ``name``, ``function`` and ``metrics``, of
        registered ones the ``plugin`` too, and what a metric ``declares``; ``plugins``, where there are any: what
        ``plugin_records`` gives of those that registered them.
    """
    matchers = custom_matchers()
    metrics = {} if judges is None else judges.metrics_of_functions()
    functions = all_functions(evaluators)
    used = {each.registered_as: each.function for each in functions if each.registered_as is not None}
    plugins = plugin_records({**used, **{registered_name(key): matcher for key, matcher in matchers.items()}})
    return {
        "matchers": [_matcher_record(key, spec_of(matcher)) for key, matcher in matchers.items()],
        "evaluators": [_evaluator_record(each, metrics.get(each.name)) for each in functions],
        **({"plugins": plugins} if plugins else {}),
    }


def _evaluator_record(evaluator: CustomFunction, metrics: Sequence[str] | None) -> dict[str, Any]:
    record: dict[str, Any] = {"name": evaluator.name, "function": spec_of(evaluator.function)}
    if evaluator.registered_as is not None:
        record["plugin"] = plugin_of(evaluator.registered_as, evaluator.function).name
    if isinstance(evaluator, MetricFunction):
        record["declares"] = declaration(evaluator.spec)
    return record if metrics is None else {**record, "metrics": metrics}


def _matcher_record(key: MatcherKey, function: str) -> dict[str, Any]:
    name, media_type = key
    kinds = {"name": name, "media_type": media_type}
    return {**{kind: value for kind, value in kinds.items() if value is not None}, "function": function}
