"""Records as text: lines of JSON, and YAML that every reader takes."""

from typing import Any

import yaml

from graphrag_eval_lc.json_values import json_text


def json_line(value: Any) -> bytes:
    """Give a record as one line of a JSON Lines file, in UTF-8 and with its newline."""
    return json_text(value).encode("utf-8") + b"\n"


class _Dumper(getattr(yaml, "CSafeDumper", yaml.SafeDumper)):  # type: ignore[misc]
    """PyYAML's safe dumper, which writes equal parts out each time."""

    def ignore_aliases(self, data: object) -> bool:
        return True


class _PlainDumper(yaml.SafeDumper):
    """The same in Python, which writes every text."""

    def ignore_aliases(self, data: object) -> bool:
        return True


def _represent_text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    """Write queries and other texts of several lines as blocks, which people can read."""
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style="|" if "\n" in text else None)


_Dumper.add_representer(str, _represent_text)
_PlainDumper.add_representer(str, _represent_text)


def yaml_text(value: Any) -> str:
    """Write a value as YAML, in the order of its keys; lone surrogates are escaped."""
    try:
        return str(yaml.dump(value, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=120))
    except UnicodeEncodeError:  # libyaml takes UTF-8 only
        return str(yaml.dump(value, Dumper=_PlainDumper, sort_keys=False, allow_unicode=False, width=120))
