"""The package's own messages contain no secrets and stay readable."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import graphrag_eval_lc
from graphrag_eval_lc.errors import ConfigError
from graphrag_eval_lc.masking import masked_text

PACKAGE = Path(graphrag_eval_lc.__file__).parent
FILES = sorted(path for path in PACKAGE.rglob("*.py") if path.parent.name != "masking")
TEMPLATES = sorted(path for kind in ("*.j2", "*.js", "*.css", "*.txt", "*.yaml") for path in PACKAGE.rglob(kind))


def texts_in(path: Path) -> Iterator[str]:
    """Yield a module's string literals; f-strings get a word for each value."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    documentation = {
        id(node.body[0].value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
        and node.body
        and isinstance(node.body[0], ast.Expr)
    }
    for node in ast.walk(tree):
        if id(node) in documentation:
            continue
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value
        elif isinstance(node, ast.JoinedStr):
            yield "".join(str(part.value) if isinstance(part, ast.Constant) else "value" for part in node.values)


@pytest.mark.full
def test_texts_of_the_package_are_unchanged() -> None:
    texts = {text: path for path in FILES for text in texts_in(path)}
    assert {path: text for text, path in texts.items() if masked_text(text) != text} == {}


@pytest.mark.parametrize("key", ["api_key", "llm.generation.api_key", "password", "token", "llm.embedding.secret"])
def test_errors_about_config_keys_are_unchanged(key: str) -> None:
    for what in (
        "environment variable NO_SUCH_KEY is not set",
        "a text is needed, not int",
        "[1, 2] is not allowed here",
        "the key is missing",
        "there is no such key",
        "Field required [type=missing]",
        "Input should be a valid string",
        "must not be empty",
    ):
        message = str(ConfigError(what, path="config.yaml", key=key, hint="Set it, or write it without ${}."))
        assert masked_text(message) == message
        assert masked_text(f"{key}: {what}") == f"{key}: {what}"


def test_templates_and_prompts_are_unchanged() -> None:
    texts = {path: path.read_text(encoding="utf-8") for path in TEMPLATES}
    assert [path for path, text in texts.items() if masked_text(text) != text] == []


@pytest.mark.parametrize("secret", ["hunter2", "swordfish", "Is5secret", "correct-horse"])
def test_password_after_a_colon_is_masked(secret: str) -> None:
    assert secret not in masked_text(f"login failed, password: {secret} was refused")
