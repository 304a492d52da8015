"""Prints JSON: the documents of ``--json``, and rows."""

import sys
from typing import Any

from pydantic import BaseModel

from graphrag_eval_lc.cli.options import say
from graphrag_eval_lc.json_values import json_text
from graphrag_eval_lc.texts import visible_json


def print_document(document: BaseModel) -> None:
    """Print a document as JSON."""
    print_json(document.model_dump(mode="json"))


def print_json(value: Any) -> None:
    """Print a value as JSON; what a terminal would obey or not show, or cannot encode, is escaped."""
    text = json_text(value, indent=2)
    say(visible_json(text, only_ascii=not _can_print(text)))


def _can_print(text: str) -> bool:
    try:
        text.encode(getattr(sys.stdout, "encoding", None) or "utf-8")
    except UnicodeEncodeError:
        return False
    return True
