"""What demo, run and runs show in terminals of 80 and 120 columns: golden screens in `tests/goldens/screens`.

GRAPHRAG_EVAL_LC_WRITE_SCREENS=1 writes them again.
"""

import os
import re
from pathlib import Path

import pytest
from support.terminals import on_terminal, plain

_SCREENS = Path(__file__).parents[1] / "goldens" / "screens"
_MAIN = "from graphrag_eval_lc.cli import main; main()"
_AGENT = """
from langchain_core.tools import tool

@tool
def find_substation(name: str) -> str:
    "Find a substation."
    return name.upper()

def answer(question):
    if "fails" in question:
        raise ValueError("the store is away")
    return find_substation.invoke({"name": question.split()[-1]})
"""
_QUESTION = """
  - id: {name}
    question_text: {text}
    reference_steps: [[{{name: find_substation, output: {output}}}]]
"""
_TEMPLATES = {
    "substations_by_their_name_in_the_bidding_zone": ["what is oslo", "what is bergen", "what fails"],
    "urn:uuid:0a1b2c3d-0000-4000-8000-00000000cafe": ["where is oslo"],
}
_HEADLINE = re.compile(r"^\d+ of \d+ right", re.MULTILINE)
# What is another in each run, in as many characters.
_CHANGING = (
    (re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d"), "2026-01-01 00:00"),
    (re.compile(r"(?<=│)( +)\d\.\d\d(?= │|$)", re.MULTILINE), r"\g<1>0.00"),
)


def dataset() -> str:
    """Return a dataset with ids that are longer than their columns."""
    lines = []
    for template, texts in _TEMPLATES.items():
        lines.append(f"- template_id: {template}\n  questions:")
        lines += [
            _QUESTION.format(name=f"{template}_number_{at}", text=text, output="BERGEN" if at else "OSLO")
            for at, text in enumerate(texts)
        ]
    return "\n".join(lines)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with an agent and a dataset."""
    made = tmp_path_factory.mktemp("screens")
    (made / "my_agent.py").write_text(_AGENT)
    (made / "questions.yaml").write_text(dataset())
    return made


@pytest.mark.parametrize("columns", [80, 120])
def test_screens_are_the_golden_ones(folder: Path, columns: int) -> None:
    run = ("run", "questions.yaml", "-a", "my_agent.py:answer", "--max-retries", "0")
    commands = {
        "demo": ("demo", "-o", f"runs{columns}/demo", "--worst", "2"),
        "run": (*run, "-o", f"runs{columns}/a_run_with_a_name_that_is_longer_than_its_column", "--label", "first"),
        "runs": ("runs", f"runs{columns}"),
    }
    for name, arguments in commands.items():
        code, written = on_terminal(["-c", _MAIN, *arguments], folder, columns=columns)
        assert code == 0, written
        screen = plain(written)
        screen = screen[_HEADLINE.search(screen).start() :] if name != "runs" else screen  # type: ignore[union-attr]
        screen = "".join(f"{line.rstrip()}\n" for line in screen.splitlines())
        for pattern, text in _CHANGING:
            screen = pattern.sub(text, screen)
        golden = _SCREENS / f"{name}_{columns}.txt"
        if os.environ.get("GRAPHRAG_EVAL_LC_WRITE_SCREENS"):
            golden.write_text(screen, encoding="utf-8")
        assert screen == golden.read_text(encoding="utf-8"), name
        tables = [line for line in screen.splitlines() if "│" in line or "┃" in line]
        assert max(map(len, tables)) <= columns
