"""What ``doctor --secrets`` prints: secrets in the files of runs, and which were masked."""

from pathlib import Path

import typer
from rich.table import Table

from graphrag_eval_lc.cli.printing import EXIT_FINDINGS, output_console, print_json, say
from graphrag_eval_lc.console import data_text
from graphrag_eval_lc.run_store.secret_scan import Scan, scan_secrets
from graphrag_eval_lc.texts import counted


def find_secrets(path: Path, *, mask: bool, as_json: bool) -> None:
    """Print the secrets in a file, the folder of a run or a folder of runs.

    Raises:
        typer.Exit: With code 1 if there are any, even if they are masked now.
    """
    found = scan_secrets(path, mask=mask)
    if as_json:
        _print_json(found)
    else:
        _print(found)
    if found.secrets:
        raise typer.Exit(EXIT_FINDINGS)


def _print(found: Scan) -> None:
    if found.secrets:
        table = Table(show_edge=False)
        for heading in ("File", "Line", "Question", "Kind", "Shape"):
            table.add_column(heading, justify="right" if heading == "Line" else "left", overflow="fold")
        for each in found.secrets:
            cells = (_shown(each.path, found), f"{each.line:,}", each.question_id or "", each.kind, each.hint)
            table.add_row(*map(data_text, cells))
        output_console().print(table)
    for path, why in found.unread.items():
        say(f"Not searched: {_shown(path, found)}: {why}.", keeps_lines=False)
    files = counted(found.files, "file")
    if not found.secrets:
        say(f"No secret was found in {files}.")
        return
    secrets = counted(len(found.secrets), "secret")
    if found.masked:
        say(f"Masked: {secrets} in {len(found.masked)} of {files}.")
        say(
            "Revoke these keys and passwords anyway: anyone who read the files has them, and so have copies, backups "
            "and uploads. Judges send new requests for texts that changed."
        )
    else:
        say(f"Found: {secrets} in {files}. Mask them with --mask, and revoke them.")


def _print_json(found: Scan) -> None:
    print_json(
        {
            "files": found.files,
            "secrets": [
                {
                    "file": str(each.path),
                    "line": each.line,
                    "question_id": each.question_id,
                    "kind": each.kind,
                    "hint": each.hint,
                }
                for each in found.secrets
            ],
            "masked": list(map(str, found.masked)),
            "unread": {str(path): why for path, why in found.unread.items()},
        }
    )


def _shown(path: Path, found: Scan) -> str:
    return str(path.relative_to(found.path)) if path != found.path else str(path)
