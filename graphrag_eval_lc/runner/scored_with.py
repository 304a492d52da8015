"""What scores a run beside its configuration: a user's own matchers and evaluators, as they are named and recorded."""

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

from graphrag_eval_lc.config import EvaluationConfig
from graphrag_eval_lc.errors import OptionError
from graphrag_eval_lc.judges.custom_functions import CustomFunction, custom_functions
from graphrag_eval_lc.matching.registry import custom_matchers
from graphrag_eval_lc.matching.steps import custom_matchers_for
from graphrag_eval_lc.records import Question, Template
from graphrag_eval_lc.registry.step_kinds import MatcherKey
from graphrag_eval_lc.runner.agent_specs import loaded_module, named_by, spec_of

if TYPE_CHECKING:
    from graphrag_eval_lc.judges.judging import Judges

Evaluator = Callable[..., Any]


def load_matchers(modules: Iterable[str]) -> None:
    """Load modules that register matchers.

    Args:
        modules: ``package.module`` or ``path/to/file.py``, as whoever starts the command names them.

    Raises:
        AgentError: One of them does not exist, or fails to load.
        OptionError: One of them registers nothing.
    """
    for module in modules:
        place, _, attribute = module.rpartition(":")
        if place and attribute.isidentifier():
            raise OptionError(f"--matchers {module} names an attribute of a module", mend=f"Write --matchers {place}.")
        loaded_module(module)
        if not custom_matchers():
            raise OptionError(
                f"--matchers {module} registers no matcher",
                mend="Let it call register_matcher of graphrag_eval_lc.matching when it is loaded.",
            )


def evaluators_of(given: Any) -> tuple[Evaluator, ...]:
    """Give evaluators, of which some may be named by their specs.

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
    raise OptionError(f"evaluators cannot be {given!r}", key="evaluators", mend="Give a list of functions.")


def scored_with(
    questions: Iterable[tuple[Template, Question]],
    config: EvaluationConfig,
    evaluators: Iterable[Evaluator | CustomFunction],
    judges: "Judges | None" = None,
) -> dict[str, list[dict[str, Any]]]:
    """Give what run.json says of the matchers and evaluators of a run.

    Args:
        questions: Those that are scored.
        config: The configuration.
        evaluators: The functions.
        judges: Who called the functions, once they are done; None leaves out which metrics they gave.

    Returns:
        ``matchers``: those that users registered for steps of these questions, with ``name`` and ``media_type`` (where
        they are for one) and the spec of the ``function``; ``evaluators``: ``name``, ``function`` and ``metrics``.
    """
    groups = (group for _, question in questions for group in question.get("reference_steps") or ())
    steps = (step for group in groups for step in group)
    matchers = custom_matchers_for(steps, names=config.steps.names, retrieval=config.retrieval)
    metrics = {} if judges is None else judges.metrics_of_functions()
    return {
        "matchers": [_matcher_record(key, spec_of(matcher)) for key, matcher in matchers.items()],
        "evaluators": [
            {
                "name": evaluator.name,
                "function": spec_of(evaluator.function),
                **({"metrics": metrics[evaluator.name]} if evaluator.name in metrics else {}),
            }
            for evaluator in custom_functions(evaluators)
        ],
    }


def _matcher_record(key: MatcherKey, function: str) -> dict[str, Any]:
    name, media_type = key
    kinds = {"name": name, "media_type": media_type}
    return {**{kind: value for kind, value in kinds.items() if value is not None}, "function": function}
