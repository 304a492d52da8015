"""The options of the pytest plugin, on the command line and in pytest's ini file; imports nothing but pytest."""

import pickle
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import pytest

# The options by name, each with its help and the placeholder of its value. The ini file has the same names.
_OPTIONS = {
    "output": (
        "A folder for the run, as graphrag-eval-lc run writes one, with its report. Several tests: a folder in it "
        "each.",
        "DIR",
    ),
    "fail-under": (
        "Fail the session if the mean of a score is below this number, such as steps_score=0.9; before a slash the "
        "template whose questions count, such as notes/steps_score=0.8; may be repeated.",
        "METRIC=MEAN",
    ),
    "fail-over": (
        "Fail the session if the mean of a metric of which less is better is above this number, such as "
        "total_tokens=5000; .median, .p95, .min, .max and .sum behind the metric are over all answers, such as "
        "elapsed_sec.p95=30; may be repeated.",
        "METRIC=NUMBER",
    ),
    "config": ("The configuration (YAML or JSON) of datasets whose marker names none; its gates hold too.", "FILE"),
    "label": ("A name for the run, kept in run.json.", "TEXT"),
    "overwrite": ("Replace an earlier run in the folder of --graphrag-output.", None),
    "open-files": (
        "Let the umask decide who may read the folder of --graphrag-output and its files, as where another user "
        "uploads them; otherwise they are for you alone.",
        None,
    ),
}
_PATHS = ("output", "config")
_LISTS = ("fail_under", "fail_over")


@dataclass(frozen=True, slots=True)
class Settings:
    """The values of the options; paths are absolute."""

    output: Path | None = None  # the folder for the runs; None: nothing is written
    fail_under: list[str] = field(default_factory=list)  # gates such as steps_score=0.9
    fail_over: list[str] = field(default_factory=list)  # gates such as elapsed_sec.p95=30
    config: Path | None = None  # the configuration for markers that name none
    label: str | None = None
    overwrite: bool = False  # whether earlier runs in the folder are replaced
    open_files: bool = False  # whether the umask decides who may read new files; otherwise only their owner may
    # the folder in which a pytest-xdist worker records what it asks; None in the process that the user started
    parts: Path | None = None

    @property
    def is_given(self) -> bool:
        """Whether an option asks for a run's folder or for gates."""
        return bool(self.output or self.fail_under or self.fail_over or self.config)


_KEY = pytest.StashKey[Settings]()
WORKER_KEY = "graphrag_eval_lc"
"""The key of the pickled settings that a process of pytest-xdist is given."""


def add_options(parser: pytest.Parser) -> None:
    """Add the options, and the ini values of the same names."""
    group = parser.getgroup("graphrag-eval-lc", "graphrag-eval-lc: agents over knowledge graphs")
    for name, (text, metavar) in _OPTIONS.items():
        key = name.replace("-", "_")
        ini = f"{text.removesuffix('.')}. The same as --graphrag-{name}, which overrides it."
        if metavar is None:
            group.addoption(f"--graphrag-{name}", dest=f"graphrag_{key}", action="store_true", help=text)
            parser.addini(f"graphrag_{key}", ini, type="bool", default=False)
        else:
            action = "append" if key in _LISTS else "store"
            group.addoption(f"--graphrag-{name}", dest=f"graphrag_{key}", action=action, metavar=metavar, help=text)
            kind: Literal["linelist", "string"] = "linelist" if key in _LISTS else "string"
            parser.addini(f"graphrag_{key}", ini, type=kind, default=None)


def keep_settings(config: pytest.Config) -> Settings:
    """Read the options, or in a pytest-xdist worker those that it received, and store them for ``settings_of``."""
    given = getattr(config, "workerinput", {}).get(WORKER_KEY)
    settings = _read(config) if given is None else pickle.loads(given)
    config.stash[_KEY] = settings
    return settings


def change_settings(config: pytest.Config, settings: Settings) -> None:
    """Replace the stored settings."""
    config.stash[_KEY] = settings


def settings_of(config: pytest.Config) -> Settings:
    """Return the stored settings."""
    return config.stash[_KEY]


def _read(config: pytest.Config) -> Settings:
    """Read the options. Paths on the command line are relative to the current folder, others to the ini file's."""
    values: dict[str, Any] = {}
    for key in (name.replace("-", "_") for name in _OPTIONS):
        on_command_line = config.getoption(f"graphrag_{key}")
        value = on_command_line or config.getini(f"graphrag_{key}")
        if value and key in _PATHS:
            of_ini = config.rootpath if config.inipath is None else config.inipath.parent
            value = Path(config.invocation_params.dir if on_command_line else of_ini, value)
        if value:
            values[key] = list(value) if key in _LISTS else value
    return Settings(**values)
