"""The page on the configuration, made from its sections."""

import re
from collections.abc import Iterator

from made_by.config_keys import DescribedKey, described_keys

_HEAD = """\
# Configuration

A YAML or JSON file: `graphrag_eval.yaml`, which the command line finds in the current folder, or one given with
`--config`; in Python a path, a dict or an `EvaluationConfig`. All is optional. A key that does not exist is an error
that names the nearest one that does, with its line.

In the sections on models and evaluations `${NAME}` stands for an environment variable; it is put in where it is used,
so that run.json has the name and not the secret. A key that was written out is masked there.

`<name>` stands for any name, and `[]` for each item of a list. A section of its own is a table below.
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
    yield "| key | what it takes | default | |"
    yield "|---|---|---|---|"
    for key in keys:
        name = key.path.rpartition(".")[2]
        default = "needed" if key.default is None else f"`{key.default}`" if key.default else ""
        yield f"| `{name}` | {_in_cell(key.takes)} | {_in_cell(default)} | {_in_cell(_markdown(key.about))} |"


def _markdown(text: str) -> str:
    """Return a docstring's text as Markdown, with YAML's word for None."""
    return re.sub(r"\bNone\b", "null", text.replace("``", "`"))


def _in_cell(text: str) -> str:
    return text.replace("|", "\\|")
