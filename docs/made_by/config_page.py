"""The page on the configuration, generated from its sections."""

import re
from collections.abc import Iterator

from made_by.config_keys import DescribedKey, described_keys

_HEAD = """\
# Configuration

The configuration is a YAML or JSON file: `graphrag_eval.yaml`, which the command line finds in the current folder, or
the file of `--config`; in Python a path, a dict or an `EvaluationConfig`. Every key is optional unless it says
otherwise. An unknown key is an error that names its line and the nearest existing key.

In the sections on models and evaluations `${NAME}` is an environment variable. It is read only when it is used, so
`run.json` has the name and not the secret. A key that you write out is masked there.

`<name>` is any name, and `[]` each item of a list. Sections have their own tables below.
"""


def config_page() -> str:
    """Return the page in Markdown: a table for each section."""
    sections: dict[str, list[DescribedKey]] = {}
    for key in described_keys():
        above, _, _ = key.path.rpartition(".")
        sections.setdefault(above, []).append(key)
    return _HEAD + "\n".join(line for name, keys in sections.items() for line in _table(name, keys)) + "\n"


def _table(section: str, keys: list[DescribedKey]) -> Iterator[str]:
    yield ""
    yield f"## {section}" if section else "## Sections and keys at the top"
    yield ""
    yield "| Key | Value | Default | Meaning |"
    yield "|---|---|---|---|"
    for key in keys:
        name = key.path.rpartition(".")[2]
        default = "required" if key.default is None else f"`{key.default}`" if key.default else ""
        yield f"| `{name}` | {_in_cell(key.takes)} | {_in_cell(default)} | {_in_cell(_markdown(key.about))} |"


def _markdown(text: str) -> str:
    """Return a docstring's text as Markdown, with null instead of None."""
    return re.sub(r"\bNone\b", "null", text.replace("``", "`"))


def _in_cell(text: str) -> str:
    return text.replace("|", "\\|")
