"""The command ``scan``: secrets in the files of runs that are there already."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from graphrag_eval_lc.cli.options import EXIT_FINDINGS, output_console, say
from graphrag_eval_lc.texts import counted

if TYPE_CHECKING:
    from graphrag_eval_lc.run_store.secret_scan import Scan


def scan(
    path: Annotated[Path, typer.Argument(help="The folder of a run, a folder of runs, or a file.", metavar="PATH")],
    mask: Annotated[
        bool, typer.Option("--mask", help="Write the files anew with *** in place of the secrets; this stays so.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON document in place of the table.")] = False,
) -> None:
    """Find secrets in the files of runs: keys, tokens, passwords, private keys, cookies.

    Errors are masked as they are recorded; what tools took and gave is kept as it is, unless the run was made with
    --redact secrets. So is all that older versions and other tools wrote. Of a secret only its shape is shown.

    With --mask the run can be resumed, scored and reported as before. A run that another process works in is refused.

    Exit code 0: no secret was found; 1: some were, also where they are masked now; 2: a file cannot be read or written.

    For example:

    `graphrag-eval-lc scan runs/first`

    `graphrag-eval-lc scan runs/ --mask`
    """
    # Imported here so that --help does not wait for what only the scan needs.
    from graphrag_eval_lc.run_store.secret_scan import scan_secrets

    found = scan_secrets(path, mask=mask)
    if as_json:
        _print_json(found)
    else:
        _print(found)
    if found.secrets:
        raise typer.Exit(EXIT_FINDINGS)


def _print(found: "Scan") -> None:
    from rich.table import Table

    from graphrag_eval_lc.console import data_text

    if found.secrets:
        table = Table(show_edge=False)
        for heading in ("File", "Line", "Question", "Kind", "Shape"):
            table.add_column(heading, justify="right" if heading == "Line" else "left", overflow="fold")
        for each in found.secrets:
            line = "" if each.line is None else f"{each.line:,}"
            cells = (_shown(each.path, found), line, each.question_id or "", each.kind, each.hint)
            table.add_row(*map(data_text, cells))
        output_console().print(table)
    for path, why in found.unread.items():
        say(f"Not looked into: {_shown(path, found)}: {why}.", keeps_lines=False)
    files = counted(found.files, "file")
    if not found.secrets:
        say(f"No secret was found in {files}.")
        return
    secrets = counted(len(found.secrets), "secret")
    if found.masked:
        say(f"Masked: {secrets} in {len(found.masked)} of {files}.")
        say(
            "Revoke these keys and passwords all the same: who has read the files knows them, and copies, backups and "
            "uploads still hold them. Judges ask again about texts that are others now."
        )
    else:
        say(f"Found: {secrets} in {files}. Mask them with --mask, and revoke them.")


def _print_json(found: "Scan") -> None:
    from graphrag_eval_lc.cli.json_printing import print_json

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


def _shown(path: Path, found: "Scan") -> str:
    return str(path.relative_to(found.path)) if path != found.path else str(path)
