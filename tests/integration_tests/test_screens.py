"""The output of demo, run and runs on terminals with 80 and 120 columns: golden screens in `tests/goldens/screens`.

GRAPHRAG_EVAL_LC_WRITE_SCREENS=1 updates them.
"""

import json
import os
import re
from pathlib import Path

from support.terminals import on_terminal, plain

_SCREENS = Path(__file__).parents[1] / "goldens" / "screens"
# A single process for all screens, as imports take most of the time.
_MAIN = """
import fcntl, json, struct, sys, termios
from graphrag_eval_lc.cli import main
for columns, arguments in json.loads(sys.argv[1]):
    fcntl.ioctl(1, termios.TIOCSWINSZ, struct.pack("HHHH", 50, columns, 0, 0))
    print("NEXT SCREEN", flush=True)
    sys.argv = ["graphrag-eval-lc", *arguments]
    try:
        main()
    except SystemExit as ended:
        assert not ended.code, ended.code
"""
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
# Values that differ between runs, replaced by as many characters.
_CHANGING = (
    (re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d"), "2026-01-01 00:00"),
    (re.compile(r"(?<=│)( +)\d\.\d\d(?= │|$)", re.MULTILINE), r"\g<1>0.00"),
)


def dataset() -> str:
    """Return a dataset with ids that are wider than their columns."""
    lines = []
    for template, texts in _TEMPLATES.items():
        lines.append(f"- template_id: {template}\n  questions:")
        lines += [
            _QUESTION.format(name=f"{template}_number_{at}", text=text, output="BERGEN" if at else "OSLO")
            for at, text in enumerate(texts)
        ]
    return "\n".join(lines)


def commands(columns: int) -> dict[str, list[str]]:
    """Return the command of each screen."""
    folder = f"runs{columns}/a_run_with_a_name_that_is_longer_than_its_column"
    return {
        "demo": ["demo", "-o", f"runs{columns}/demo", "--worst", "2"],
        "run": [
            "run",
            "questions.yaml",
            "-a",
            "my_agent.py:answer",
            "--max-retries",
            "0",
            "--label",
            "first",
            "-o",
            folder,
        ],
        "runs": ["runs", f"runs{columns}"],
    }


def test_screens_match_the_golden_ones(tmp_path: Path) -> None:
    (tmp_path / "my_agent.py").write_text(_AGENT)
    (tmp_path / "questions.yaml").write_text(dataset())
    screens = [(columns, name, arguments) for columns in (80, 120) for name, arguments in commands(columns).items()]
    asked = json.dumps([(columns, arguments) for columns, _, arguments in screens])
    code, written = on_terminal(["-c", _MAIN, asked], tmp_path)
    assert code == 0, written
    _, *texts = plain(written).split("NEXT SCREEN\n")
    for (columns, name, _), screen in zip(screens, texts, strict=True):
        screen = screen[_HEADLINE.search(screen).start() :] if name != "runs" else screen  # type: ignore[union-attr]
        screen = "".join(f"{line.rstrip()}\n" for line in screen.splitlines())
        for pattern, text in _CHANGING:
            screen = pattern.sub(text, screen)
        golden = _SCREENS / f"{name}_{columns}.txt"
        if os.environ.get("GRAPHRAG_EVAL_LC_WRITE_SCREENS"):
            golden.write_text(screen, encoding="utf-8")
        assert screen == golden.read_text(encoding="utf-8"), (name, columns)
        tables = [line for line in screen.splitlines() if "│" in line or "┃" in line]
        assert max(map(len, tables)) <= columns
