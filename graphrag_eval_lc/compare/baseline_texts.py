"""Gates beside a baseline as texts of the command line, and gates in any form that Python takes."""

import re
from collections.abc import Iterable, Mapping
from typing import Final

from graphrag_eval_lc.compare.gate_texts import (
    gate_text,
    gates_over,
    gates_under,
    number_in,
    wrong_text,
)
from graphrag_eval_lc.compare.gates import Gates, read_gates
from graphrag_eval_lc.compare.regression import no_drop
from graphrag_eval_lc.config import EvaluationConfig, GateConfig
from graphrag_eval_lc.errors import OptionError
from graphrag_eval_lc.registry.metrics import MAIN_METRIC

GatesBeside = Gates | EvaluationConfig
"""Gates as one run takes them and texts such as ``--max-drop steps_score=0.05``; or a configuration with gates."""

DROP_EXAMPLE: Final = f"--max-drop 0.05 or --max-drop {MAIN_METRIC}=0.05"
PER_TEMPLATE_EXAMPLE: Final = f"--max-drop-per-template 0.2 or --max-drop-per-template {MAIN_METRIC}=0.2"
LOST_EXAMPLE: Final = "--max-lost 2, --max-lost 2/template (in each) or --max-lost 1/notes (in notes)"

_PER_TEMPLATE: Final = "template"
_OPTION: Final = re.compile(r"\s*--(?P<option>[a-z-]+)[ =]\s*(?P<value>.+)", re.DOTALL)


def gates_of_drops(texts: Iterable[str], *, is_confident: bool = False) -> list[GateConfig]:
    """Read what ``--max-drop`` takes; a number alone is of the main metric.

    Raises:
        OptionError: A text has another form, is no drop from 0 to 1, or limits the same twice.

    Example:
        >>> [(gate.template, gate.metric, gate.max_drop) for gate in gates_of_drops(["0.05", "notes/steps_score=0.1"])]
        [(None, None, 0.05), ('notes', 'steps_score', 0.1)]
    """
    gates = []
    for text in texts:
        template, metric, drop = _drop_in(text, DROP_EXAMPLE)
        gates.append(GateConfig(template=template, metric=metric, max_drop=drop, confident=is_confident))
    _refuse_twice(gates, "--max-drop")
    return gates


def gates_of_drops_per_template(texts: Iterable[str], *, is_confident: bool = False) -> list[GateConfig]:
    """Read what ``--max-drop-per-template`` takes; a number alone is of the main metric.

    Raises:
        OptionError: A text has another form, is no drop from 0 to 1, or limits the same twice.

    Example:
        >>> [(gate.metric, gate.max_drop_per_template) for gate in gates_of_drops_per_template(["answer_f1=0.2"])]
        [('answer_f1', 0.2)]
    """
    gates = []
    for text in texts:
        template, metric, drop = _drop_in(text, PER_TEMPLATE_EXAMPLE)
        if template is not None:
            raise OptionError(
                f"{text!r} names a template, and --max-drop-per-template holds in each",
                hint=f"Write --max-drop {text}, or leave {template}/ out.",
            )
        gates.append(GateConfig(metric=metric, max_drop_per_template=drop, confident=is_confident))
    _refuse_twice(gates, "--max-drop-per-template")
    return gates


def gates_of_lost(texts: Iterable[str]) -> list[GateConfig]:
    """Read what ``--max-lost`` takes: a number, ``2/template`` for each template, ``1/notes`` for one.

    Raises:
        OptionError: A text has another form, or limits the same twice.

    Example:
        >>> [(each.condition, each.template) for each in gates_of_lost(["5", "2/template", "1/notes"])]
        [('max_lost', None), ('max_lost_per_template', None), ('max_lost', 'notes')]
    """
    gates = []
    for text in texts:
        number, slash, template = text.strip().partition("/")
        if not re.fullmatch(r"[0-9]{1,9}", number) or (slash and not template):
            raise wrong_text(text, LOST_EXAMPLE, "number of lost questions")
        if template == _PER_TEMPLATE:
            gates.append(GateConfig(max_lost_per_template=int(number)))
        else:
            gates.append(GateConfig(max_lost=int(number), template=template if slash else None))
    _refuse_twice(gates, "--max-lost")
    return gates


def read_gates_beside(given: GatesBeside) -> list[GateConfig]:
    """Read gates of a run beside a baseline in any of their forms.

    Args:
        given: As for ``read_gates``; texts may be options of ``compare``, such as ``--max-drop steps_score=0.05``.

    Raises:
        OptionError: One of them is no gate.

    Example:
        >>> gates = read_gates_beside(["--max-lost 2", "steps_score=0.9", "--fail-over total_tokens=+10%"])
        >>> [gate.condition for gate in gates]
        ['max_lost', 'under', 'over']
    """
    if isinstance(given, EvaluationConfig):
        return given.gates
    if isinstance(given, Mapping) or not isinstance(given, Iterable):
        return read_gates(given, has_baseline=True)
    gates: list[GateConfig] = []
    for each in [given] if isinstance(given, str) else given:
        if not isinstance(each, str):
            gates += read_gates([each], has_baseline=True)
        elif (option := _OPTION.fullmatch(each)) is not None:
            gates += _gates_of_option(each, option["option"], option["value"])
        elif each.rpartition("=")[2].lstrip().startswith("+"):
            gates += gates_over([each], has_baseline=True)
        else:
            gates += read_gates([each], has_baseline=True)
    return gates


def _gates_of_option(text: str, option: str, value: str) -> list[GateConfig]:
    match option:
        case "max-drop":
            return gates_of_drops([value])
        case "max-drop-per-template":
            return gates_of_drops_per_template([value])
        case "max-lost":
            return gates_of_lost([value])
        case "fail-over":
            return gates_over([value], has_baseline=True)
        case "fail-under":
            return gates_under([value])
    known = "--max-drop, --max-drop-per-template, --max-lost, --fail-over and --fail-under"
    raise OptionError(f"{text!r:.80} is no gate", hint=f"There are {known}.")


def _refuse_twice(gates: Iterable[GateConfig], option: str) -> None:
    """Refuse two limits of the same; the main metric may be limited by its name too, as its name is not known yet."""
    seen: set[tuple[str | None, str | None, str]] = set()
    for gate in gates:
        key = (gate.metric, gate.template, gate.condition)
        if key in seen:
            of_template = "" if gate.template is None else f" of the template {gate.template}"
            name = gate.metric or "the main metric"
            raise OptionError(f"{option} limits {name}{of_template} twice", hint="Leave one of them out.")
        seen.add(key)


def _drop_in(text: str, example: str) -> tuple[str | None, str | None, float]:
    """Return the template, the metric and the drop in a text."""
    if "=" in text:
        parts = gate_text(text, example, "drop that can be allowed")
        template, metric, value = parts.template, parts.metric, parts.value
    else:
        template, metric, value = None, None, text
    drop = number_in(value)
    if drop is None or not 0 <= drop <= 1:
        raise no_drop(text)
    return template, metric, drop
