"""What is declared next to an option: how the command line accepts it, and where run.json keeps it.

Nothing of pydantic is needed here, so that the command line can read it at once.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal

ProgressMode = Literal["auto", "bar", "lines", "off"]

# The panels of --help, in their order.
SELECTION = "Which questions"
ASKING = "How they are asked"
ENGINE = "Where the work is done"
CAPTURE = "What is kept of the agent's steps"
ENDING = "When the run ends early"
GATES = "When the command fails"
FOLDER = "The run's folder"
DISPLAY = "What is shown"
PANELS = (None, SELECTION, ASKING, ENGINE, CAPTURE, ENDING, GATES, FOLDER, DISPLAY)


class _OfField:
    """Says that something of an option of the command line is that of its field."""


OF_FIELD: Any = _OfField()


@dataclass(frozen=True, slots=True)
class Common:
    """Says that most users need an option: the short help of a command has it.

    Attributes:
        brief: What the short help says of it; by default the first sentence of its help.
    """

    brief: str | None = None


COMMON: Final = Common()


@dataclass(frozen=True, slots=True, kw_only=True)
class Cli:
    """An option of the command line. A field without one is an option in Python only.

    Attributes:
        name: Such as ``--template``; by default made of the field's name.
        short: Such as ``-j``.
        help: By default the field's description.
        panel: The panel of ``--help``; None for the first.
        metavar: What stands for the value.
        type: By default made of the field's type.
        default: Of the command line, if it has another one.
        is_common: Whether most users need it, so that ``--help`` shows the first sentence of its help; ``--help-all``
            shows all options in full.
        converts: Makes the field's value of that of the command line.
    """

    name: str | None = None
    short: str | None = None
    help: str | None = None
    panel: str | None = None
    metavar: str | None = None
    type: Any = OF_FIELD
    default: Any = OF_FIELD
    is_common: bool = False
    converts: Callable[[Any], Any] | None = None


@dataclass(frozen=True, slots=True)
class Recorded:
    """Says that run.json keeps an option.

    Attributes:
        part: The part of run.json, such as ``limits``; None for the top.
        writes: Makes of the checked value, unless it is None, what is written.
    """

    part: str | None = None
    writes: Callable[[Any], Any] | None = None


QUIET = Cli(
    name="--quiet",
    short="-q",
    help="Show no progress, only the result and problems.",
    panel=DISPLAY,
    type=bool,
    default=False,
    is_common=True,
    converts=lambda is_quiet: "off" if is_quiet else "auto",
)


def recorded(options: Any) -> dict[str, Any]:
    """Return what run.json keeps of options, by their names, in the order of their fields."""
    record: dict[str, Any] = {}
    for name, mark in _marked(type(options), Recorded):
        value = getattr(options, name)
        part = record if mark.part is None else record.setdefault(mark.part, {})
        part[name] = value if value is None or mark.writes is None else mark.writes(value)
    return record


def cli_options(model: Any) -> Mapping[str, tuple[Any, Cli]]:
    """Return the fields of a model that the command line accepts, each with how it does."""
    return {name: (model.model_fields[name], mark) for name, mark in _marked(model, Cli)}


def _marked(model: Any, kind: type) -> list[tuple[str, Any]]:
    fields = model.model_fields.items()
    return [(name, mark) for name, field in fields for mark in field.metadata if isinstance(mark, kind)]
