"""The getting-started path: a fresh environment, the built wheel, and the page's commands up to a gated run."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from support.code_blocks import code_blocks, run_blocks

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "start" / "own-agent.md"


@pytest.mark.full
def test_your_own_agent_page_works_in_a_fresh_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def run(*command: object) -> None:
        subprocess.run(command, check=True, cwd=tmp_path, env=environment)  # type: ignore[arg-type]

    environment = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "PYTEST"))}
    pip = (sys.executable, "-m", "pip", "--disable-pip-version-check")
    run(*pip, "wheel", "--quiet", "--no-deps", "--wheel-dir", tmp_path / "dist", ROOT)
    [wheel] = (tmp_path / "dist").iterdir()
    run(sys.executable, "-m", "venv", tmp_path / "venv")
    run(tmp_path / "venv" / "bin" / "pip", "install", "--quiet", f"{wheel}[demo]")

    project = tmp_path / "project"
    project.mkdir()
    monkeypatch.chdir(project)
    for name in [name for name in os.environ if name.startswith(("PYTHON", "PYTEST"))]:
        monkeypatch.delenv(name)
    assert run_blocks(PAGE, tmp_path / "venv" / "bin") >= 8
    consoles = [block.text for block in code_blocks(PAGE) if block.language == "console"]
    assert "Gate passed" in consoles[-1]
    assert len(list((project / "runs").iterdir())) == 3
