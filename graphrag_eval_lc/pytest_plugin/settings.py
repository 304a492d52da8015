"""The options of the plugin, on the command line and in pytest's ini file; this imports nothing but pytest."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import pytest

_OUTPUT = (
    "A folder for the run, as graphrag-eval-lc run writes one, with its report. Several tests: a folder in it each."
)
_UNDER = (
    "Fail the session where the mean of a score is below this number, such as steps_score=0.9; before a slash the "
    "template whose questions count, such as notes/steps_score=0.8; may be repeated."
)
_OVER = (
    "Fail the session where the mean of a metric of which less is better is above this number, such as "
    "total_tokens=5000; .median, .p95, .min, .max and .sum behind the metric are over all answers, such as "
    "elapsed_sec.p95=30; may be repeated."
)
_CONFIG = "The configuration (YAML or JSON) of datasets whose marker names none; its gates hold too."
_LABEL = "A name for the run, kept in run.json."
_OVERWRITE = "Replace an earlier run in the folder of --graphrag-output."
_OPEN_FILES = (
    "Let the umask decide who may read the folder of --graphrag-output and its files, as where another user uploads "
    "them; otherwise they are for you alone."
)


@dataclass(frozen=True, slots=True)
class Settings:
    """What the options say; paths are absolute.

    Attributes:
        output: The folder for the runs; None: nothing is written.
        fail_under: Gates such as ``steps_score=0.9``.
        fail_over: Gates such as ``elapsed_sec.p95=30``.
        config: The configuration of datasets whose marker names none.
        label: A name for the runs.
        overwrite: Whether earlier runs in the folder are replaced.
        open_files: Whether the umask decides who may read what is made, and not its owner alone.
        parts: Where the processes of pytest-xdist keep what they ask; None in the process that the user started.
    """

    output: Path | None = None
    fail_under: list[str] = field(default_factory=list)
    fail_over: list[str] = field(default_factory=list)
    config: Path | None = None
    label: str | None = None
    overwrite: bool = False
    open_files: bool = False
    parts: Path | None = None

    @property
    def is_given(self) -> bool:
        """Whether an option asks for a run's folder or for gates."""
        return bool(self.output or self.fail_under or self.fail_over or self.config)

    def as_dict(self) -> dict[str, Any]:
        """Return plain values, for another process."""
        values = {name: getattr(self, name) for name in self.__slots__}
        return {name: str(value) if isinstance(value, Path) else value for name, value in values.items()}

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> "Settings":
        """Return the settings that ``as_dict`` gave."""
        paths = ("output", "config", "parts")
        read: dict[str, Any] = {
            name: Path(value) if name in paths and value else value for name, value in values.items()
        }
        return cls(**read)


_KEY = pytest.StashKey[Settings]()


def add_options(parser: pytest.Parser) -> None:
    """Add the options, and the ini values of the same names."""
    group = parser.getgroup("graphrag-eval-lc", "graphrag-eval-lc: agents over knowledge graphs")
    for name, text, metavar, many in (
        ("output", _OUTPUT, "DIR", False),
        ("fail-under", _UNDER, "METRIC=MEAN", True),
        ("fail-over", _OVER, "METRIC=NUMBER", True),
        ("config", _CONFIG, "FILE", False),
        ("label", _LABEL, "TEXT", False),
    ):
        destination = f"graphrag_{name.replace('-', '_')}"
        action = "append" if many else "store"
        group.addoption(f"--graphrag-{name}", dest=destination, action=action, metavar=metavar, help=text)
        kind: Literal["linelist", "string"] = "linelist" if many else "string"
        parser.addini(destination, _ini_help(name, text), type=kind, default=None)
    for name, text in (("overwrite", _OVERWRITE), ("open-files", _OPEN_FILES)):
        destination = f"graphrag_{name.replace('-', '_')}"
        group.addoption(f"--graphrag-{name}", dest=destination, action="store_true", help=text)
        parser.addini(destination, _ini_help(name, text), type="bool", default=False)


def _ini_help(name: str, text: str) -> str:
    return f"{text.removesuffix('.')}. The same as --graphrag-{name}, which goes before it."


def keep_settings(config: pytest.Config) -> Settings:
    """Read the options, or in a process of pytest-xdist what it was given, and keep them for ``settings_of``."""
    workerinput = getattr(config, "workerinput", None)
    settings = _read(config) if workerinput is None else Settings.from_dict(workerinput.get("graphrag_eval_lc", {}))
    config.stash[_KEY] = settings
    return settings


def change_settings(config: pytest.Config, settings: Settings) -> None:
    """Replace the settings that are kept."""
    config.stash[_KEY] = settings


def settings_of(config: pytest.Config) -> Settings:
    """Return the settings that are kept."""
    return config.stash[_KEY]


def _read(config: pytest.Config) -> Settings:
    label = config.getoption("graphrag_label") or config.getini("graphrag_label")
    return Settings(
        output=_path(config, "graphrag_output"),
        fail_under=_texts(config, "graphrag_fail_under"),
        fail_over=_texts(config, "graphrag_fail_over"),
        config=_path(config, "graphrag_config"),
        label=label or None,
        overwrite=_is_on(config, "graphrag_overwrite"),
        open_files=_is_on(config, "graphrag_open_files"),
    )


def _is_on(config: pytest.Config, name: str) -> bool:
    return bool(config.getoption(name) or config.getini(name))


def _texts(config: pytest.Config, name: str) -> list[str]:
    return list(config.getoption(name) or config.getini(name) or ())


def _path(config: pytest.Config, name: str) -> Path | None:
    """Return a path: relative to the current folder on the command line, else to that of the ini file."""
    if given := config.getoption(name):
        return Path(config.invocation_params.dir, given)
    if given := config.getini(name):
        return Path(config.rootpath if config.inipath is None else config.inipath.parent, given)
    return None
