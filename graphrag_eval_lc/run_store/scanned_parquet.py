"""The texts of Parquet files, masked."""

import io
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from graphrag_eval_lc.errors import RunFolderError
from graphrag_eval_lc.masking import Found, masked_and_found, masked_text

if TYPE_CHECKING:
    import pyarrow


def has_pyarrow() -> bool:
    """Return whether Parquet files can be read."""
    return find_spec("pyarrow") is not None


def secrets_of_parquet(path: Path) -> list[Found]:
    """Return the secrets in the columns of texts, one column after the other.

    Raises:
        RunFolderError: The file cannot be read.
    """
    table = _read(path)
    texts = (value for name in _text_columns(table) for value in table.column(name).to_pylist() if value is not None)
    return [found for text in texts for found in masked_and_found(text)[1]]


def masked_parquet(path: Path) -> bytes:
    """Return the content of a file without the secrets in its texts; all other columns are equal."""
    import pyarrow
    from pyarrow import parquet

    table = _read(path)
    for name in _text_columns(table):
        masked = [None if value is None else masked_text(value) for value in table.column(name).to_pylist()]
        place = table.schema.get_field_index(name)
        table = table.set_column(place, table.schema.field(name), pyarrow.array(masked, table.schema.field(name).type))
    written = io.BytesIO()
    parquet.write_table(table, written)
    return written.getvalue()


def _read(path: Path) -> "pyarrow.Table":
    import pyarrow
    from pyarrow import parquet

    try:
        return parquet.ParquetFile(path).read()
    except (OSError, pyarrow.ArrowException) as problem:
        hint = "Remove it, or write it anew."
        raise RunFolderError("this is no Parquet file that can be read", path=path, hint=hint) from problem


def _text_columns(table: "pyarrow.Table") -> list[str]:
    import pyarrow

    is_text = (pyarrow.types.is_string, pyarrow.types.is_large_string)
    return [field.name for field in table.schema if any(check(field.type) for check in is_text)]
