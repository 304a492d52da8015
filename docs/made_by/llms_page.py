"""llms.txt (https://llmstxt.org): a short index of the documentation for language models."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

_ROOT = Path(__file__).parents[2]
_DOCS = _ROOT / "docs"
_HEAD = """\
# graphrag_eval_lc

> Python library and command line that find out how well a LangChain or LangGraph agent answers questions from a
> knowledge graph, which step went wrong, what it costs, and whether a change made it better.

- Run a dataset: `graphrag-eval-lc run questions.yaml --agent my_agent.py:agent -o runs/first`, or
  `run_benchmark(agent, "questions.yaml", output_dir="runs/first")`.
- Record an agent: `agent.invoke(…, config={"callbacks": [GraphRAGEvalCallbackHandler()]})`.
- Formats of datasets and responses are graphrag-eval's. Exit codes: 0 success, 1 failure, 2 wrong usage, 3 nothing to
  compare.
"""


def llms_page() -> str:
    """Return the text: the pages of the site's navigation, each with its first sentence."""
    navigation = yaml.safe_load((_ROOT / "mkdocs.yml").read_text(encoding="utf-8"))["nav"]
    parts = [part for part in navigation if isinstance(next(iter(part.values())), list)]
    single = [part for part in navigation if part not in parts and "Home" not in part]
    return _HEAD + "".join(_part(part) for part in parts) + "".join(f"{line}\n" for line in _pages(single))


def _part(part: dict[str, Any]) -> str:
    [(title, pages)] = part.items()
    return f"\n## {title}\n\n" + "\n".join(_pages(pages)) + "\n"


def _pages(pages: list[Any]) -> Iterator[str]:
    for page in pages:
        [(title, path)] = page.items()
        if isinstance(path, str):
            yield f"- [{title}]({path}): {_first_sentence(path)}"
        else:
            names = [f"[{name}]({inner})" for each in path for name, inner in each.items()]
            yield f"- {title}: {', '.join(names)}"


def _first_sentence(path: str) -> str:
    """Return the first sentence of a page below its title."""
    lines = (_DOCS / path).read_text(encoding="utf-8").splitlines()
    paragraph: list[str] = []
    for line in lines:
        if line.startswith(("#", ":::", "|", "```", "!", "<", "-")) or not line.strip():
            if paragraph:
                break
            continue
        paragraph.append(line.strip())
    text = " ".join(paragraph).removeprefix("This page shows ")
    sentence, stop, _ = text.partition(". ")
    sentence = f"{sentence}." if stop else text
    return sentence[:1].upper() + sentence[1:]
