"""The command ``schema``: the JSON Schemas of the formats."""

from pathlib import Path
from typing import Annotated

import typer

from graphrag_eval_lc.cli.options import say
from graphrag_eval_lc.errors import OptionError
from graphrag_eval_lc.texts import listed


def schema(
    name: Annotated[str, typer.Argument(help="config, dataset, responses, or a document of --json.", metavar="NAME")],
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="The file to write, in place of printing.", metavar="FILE")
    ] = None,
) -> None:
    """Print the JSON Schema of a format, with which editors complete and check a file.

    A YAML file that begins with `# yaml-language-server: $schema=FILE` is completed and checked by editors that know
    YAML's language server, such as VS Code with the YAML extension.

    For example:

    `graphrag-eval-lc schema config --output config.schema.json`
    """
    # Imported here so that --help does not wait for pydantic.
    from graphrag_eval_lc.config.loading import CONFIG_SCHEMA_PATH
    from graphrag_eval_lc.dataset.loading import SCHEMA_PATHS
    from graphrag_eval_lc.files.writing import replace_file
    from graphrag_eval_lc.report.json_documents import DOCUMENT_SCHEMA_PATHS

    paths = {"config": CONFIG_SCHEMA_PATH, **SCHEMA_PATHS, **DOCUMENT_SCHEMA_PATHS}
    if name not in paths:
        raise OptionError(f"there is no schema {name!r:.80}", hint=f"There are {listed(list(paths), len(paths))}.")
    text = paths[name].read_text(encoding="utf-8")
    if output is None:
        say(text.rstrip("\n"))
    else:
        replace_file(output, [text.encode()])
        say(f"Written to {output}.")
