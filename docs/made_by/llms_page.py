"""llms.txt (https://llmstxt.org): what the documentation has, for programs that read it."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

_ROOT = Path(__file__).parents[2]
_DOCS = _ROOT / "docs"
_HEAD = """\
# graphrag_eval_lc

> Python library and command line that find out how good a LangChain or LangGraph agent over a knowledge graph is,
> which step went wrong, what it costs, and whether a change made it better. It captures tool calls with a callback
> handler, runs a reference dataset through the agent, and scores steps, retrieval and answers. Formats are those of
> graphrag-eval.
"""


def llms_page() -> str:
    """Return the text: the pages of the site's navigation, each with its first sentence."""
    navigation = yaml.safe_load((_ROOT / "mkdocs.yml").read_text(encoding="utf-8"))["nav"]
    return _HEAD + "".join(_part(part) for part in navigation)


def _part(part: dict[str, Any]) -> str:
    [(title, pages)] = part.items()
    lines = list(_pages({title: pages} if isinstance(pages, str) else pages))
    return f"\n## {title}\n\n" + "\n".join(lines) + "\n"


def _pages(pages: Any) -> Iterator[str]:
    for page in pages if isinstance(pages, list) else [pages]:
        [(title, path)] = page.items()
        if isinstance(path, str):
            if (_DOCS / path).is_file():
                yield f"- [{title}]({path}): {_first_sentence(path)}"
        else:
            yield from _pages(path)


def _first_sentence(path: str) -> str:
    """Return the first sentence of a page that is no title."""
    lines = (_DOCS / path).read_text(encoding="utf-8").splitlines()
    paragraph: list[str] = []
    for line in lines:
        if line.startswith(("#", ":::", "|", "```", "!", "<", "-")) or not line.strip():
            if paragraph:
                break
            continue
        paragraph.append(line.strip())
    text = " ".join(paragraph)
    sentence, stop, _ = text.partition(". ")
    return f"{sentence}." if stop else text
