"""The command ``mcp``: a server with which coding agents read runs."""

from pathlib import Path

from graphrag_eval_lc.cli.options import with_options
from graphrag_eval_lc.integrations.mcp_server import serve


@with_options()
def mcp(folder: Path = Path("runs")) -> None:
    """Serve runs to coding agents over the Model Context Protocol.

    It talks over standard input and output. The tools only read: list_runs, failures, explain, compare, validate and
    lint. Nothing is sent anywhere but to the client that started the command. Needs the extra `graphrag-eval-lc[mcp]`.

    For example, for Claude Code:

    `claude mcp add graphrag-eval -- graphrag-eval-lc mcp runs/`

    Options:
        folder RUNS_DIR: The folder of runs, or of one run.
    """
    serve(folder)
