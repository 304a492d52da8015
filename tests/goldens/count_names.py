"""Count the files of the package that declare each metric and step name.

``python tests/goldens/count_names.py [COMMIT | FOLDER]``; by default the working tree. ``--limit 3`` exits with 1 if a
name is in more files than that.

What counts, in ``graphrag_eval_lc/`` without ``demo/`` (an agent) and the generated ``*.schema.json``:

- Python: a string constant, or a constant part of an f-string, that equals the name (``"answer_f1_cost"`` is another
  key, and a sentence with the word is prose; docstrings and ``__slots__`` never count), and a field with the name in a
  class for records or files (TypedDict, pydantic), since it is read by that key. Attributes of other objects are Python
  names and not keys. A name that ends in ``_``, ``@`` or ``^`` is a prefix: every constant that starts with it counts,
  unless it contains a space or is another listed name. Uses of a constant that another file declares (``TEXT_PREFIX``)
  are not declarations.
- JavaScript: the name in quotes, or after a dot as a property. Jinja: the name in quotes, since its dots read Python
  objects.

``retrieval`` is both a step name and a section of the config. Its Python fields do not count, and neither does anything
in ``config/``, a keyword argument ``key=`` or ``section=``, or a tuple or list next to the section ``steps``: these
refer to the section.
"""

import argparse
import ast
import re
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parent.parent.parent
NAMES = {
    "metrics of samples": ["steps_score", "answer_recall", "answer_precision", "answer_f1", "answer_relevance"],
    "judged metrics of steps": [
        *(f"retrieval_{kind}_{name}" for kind in ("answer", "context") for name in ("recall", "precision", "f1")),
        "retrieval_utilization",
    ],
    "retrieval without a model": [
        "retrieval_ids_",
        "retrieval_text_",
        "retrieval_text_precision",
        "retrieval_text_recall",
        "retrieval_text_f1",
        "retrieval_missing",
        "retrieval_text_missing",
    ],
    "spent": ["input_tokens", "output_tokens", "total_tokens", "elapsed_sec"],
    "costs and totals": [
        "agent_cost",
        "judges_cost",
        "cost",
        "number_of_samples",
        "number_of_error_samples",
        "number_of_success_samples",
    ],
    "repeats": ["pass@", "pass^"],
    "judges": ["answer_correctness", "retrieval_answer", "retrieval_context"],
    "steps": [
        "sparql_query",
        "iri_discovery",
        "retrieval",
        "retrieve_time_series",
        "retrieve_data_points",
        "autocomplete_search",
    ],
}
_LISTED = frozenset(name for names in NAMES.values() for name in names if not name.endswith(("_", "@", "^")))
_SECTION = "retrieval"
_OTHER_SECTION = "steps"
_SECTION_KEYWORDS = ("key", "section")
_ENDS_OF_BEGINNINGS = ("_", "@", "^")


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("tree", nargs="?", help="a commit, or a folder that holds graphrag_eval_lc")
    parser.add_argument("--limit", type=int, metavar="N", help="exit with 1 where a name stands in more files")
    arguments = parser.parse_args()
    if arguments.tree is None or Path(arguments.tree).is_dir():
        found = files_by_name(Path(arguments.tree or REPOSITORY))
    else:
        with tempfile.TemporaryDirectory() as folder:
            _lay_out(arguments.tree, Path(folder))
            found = files_by_name(Path(folder))
    for group, names in NAMES.items():
        print(f"{group}:")
        for name in names:
            print(f"  {name:<28} {len(found[name]):>3}  {', '.join(found[name])}")
    above = [name for name, files in found.items() if arguments.limit is not None and len(files) > arguments.limit]
    if above:
        sys.exit(f"in more than {arguments.limit} files: {', '.join(above)}")


def files_by_name(tree: Path) -> dict[str, list[str]]:
    """Return the files of the package that declare each name."""
    package = tree / "graphrag_eval_lc"
    if not package.is_dir():
        sys.exit(f"{tree} holds no graphrag_eval_lc")
    found: dict[str, list[str]] = {name: [] for names in NAMES.values() for name in names}
    for path in sorted(package.rglob("*")):
        place = path.relative_to(package)
        if place.parts[0] == "demo" or path.suffix not in (".py", ".js", ".j2"):
            continue
        text = path.read_text(encoding="utf-8")
        is_python = path.suffix == ".py"
        words = set(_python_words(text)) if is_python else set(_script_words(text, has_keys=path.suffix == ".js"))
        for name, files in found.items():
            if any(_is_name(name, word, is_field, place) for word, is_field in words):
                files.append(place.as_posix())
    return found


def _is_name(name: str, word: str, is_field: bool, place: Path) -> bool:
    if name == _SECTION and (is_field or place.parts[0] == "config"):
        return False
    if name.endswith(_ENDS_OF_BEGINNINGS):
        return word.startswith(name) and " " not in word and word not in _LISTED
    return word == name


def _python_words(text: str) -> Iterator[tuple[str, bool]]:
    """Yield the string constants of a module except for its docstrings, and the fields of its classes."""
    tree = ast.parse(text)
    left_out = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr):
            left_out.add(id(node.value))
        if isinstance(node, ast.keyword) and node.arg in _SECTION_KEYWORDS and _is_constant(node.value, _SECTION):
            left_out.add(id(node.value))
        if isinstance(node, ast.Tuple | ast.List) and any(_is_constant(each, _OTHER_SECTION) for each in node.elts):
            left_out |= {id(each) for each in node.elts if _is_constant(each, _SECTION)}
        if isinstance(node, ast.Assign) and any(
            isinstance(each, ast.Name) and each.id == "__slots__" for each in node.targets
        ):
            left_out |= {id(each) for each in ast.walk(node.value)}
        if isinstance(node, ast.ClassDef) and not _is_of_attributes(node):
            for each in node.body:
                if isinstance(each, ast.AnnAssign) and isinstance(each.target, ast.Name):
                    yield each.target.id, True
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in left_out:
            yield node.value, False


def _is_of_attributes(node: ast.ClassDef) -> bool:
    """Return whether its fields are read as attributes: a dataclass or a named tuple."""
    named = [each.func if isinstance(each, ast.Call) else each for each in (*node.decorator_list, *node.bases)]
    return any(isinstance(each, ast.Name) and each.id in ("dataclass", "NamedTuple") for each in named)


def _is_constant(node: ast.AST, value: str) -> bool:
    return isinstance(node, ast.Constant) and node.value == value


def _script_words(text: str, *, has_keys: bool) -> Iterator[tuple[str, bool]]:
    for quoted in re.finditer(r"""(["'`])([^"'`\n]+)\1""", text):
        yield quoted[2], False
    for name in re.findall(r"\.([A-Za-z_]\w*)", text) if has_keys else ():
        yield name, False


def _lay_out(commit: str, folder: Path) -> None:
    command = ["git", "archive", commit, "graphrag_eval_lc"]
    archive = subprocess.run(command, cwd=REPOSITORY, capture_output=True, check=False)
    if archive.returncode:
        print(archive.stderr.decode().strip(), file=sys.stderr)
        sys.exit(2)
    with tarfile.open(fileobj=BytesIO(archive.stdout)) as files:
        files.extractall(folder, filter="data")


if __name__ == "__main__":
    main()
