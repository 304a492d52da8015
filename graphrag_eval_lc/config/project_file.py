"""The project file: the config in the current folder that the command line finds by itself, with a section ``run``."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from graphrag_eval_lc.errors import ConfigError
from graphrag_eval_lc.files.reading import line_of, parse_json_at, parse_yaml, read_text

PROJECT_FILE = "graphrag_eval.yaml"
RUN_SECTION = "run"


def project_file() -> Path | None:
    """Return the project file of the current folder, if there is one; those of other folders are not looked for."""
    path = Path(PROJECT_FILE)
    return path if path.is_file() else None


def run_section(path: Path) -> Mapping[str, Any]:
    """Return the options of ``run`` that a config has; no other part of it is checked.

    Raises:
        ConfigError: The file cannot be read or parsed, or the section is no mapping.
    """
    file = read_text(path, ConfigError, what="config")
    if file.format == "json":
        values = parse_json_at(file.text, ConfigError, what="config", path=file.path)
    else:
        values = parse_yaml(file, ConfigError, what="config")
    section = values.get(RUN_SECTION) if isinstance(values, dict) else None
    if section is None:
        return {}
    if not isinstance(section, dict):
        raise error_in_run(path, "it is no mapping", "Write options of run, such as agent: my_agent.py:agent.")
    return section


def error_in_run(path: Path, what: str, hint: str, key: str | None = None) -> ConfigError:
    """Return the error on the section, or on one of its keys, with the line."""
    places = [RUN_SECTION] if key is None else [RUN_SECTION, key]
    line = line_of(read_text(path, ConfigError, what="config"), places)
    return ConfigError(what, path=str(path), line=line, key=".".join(places), hint=hint)
