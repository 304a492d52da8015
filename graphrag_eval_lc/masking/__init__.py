"""Masks secrets in texts and settings, so that none reaches a file, a log or an error message."""

from graphrag_eval_lc.masking.masked import (
    masked_and_found,
    masked_secrets,
    masked_text,
    masked_values,
    remember_secret,
    remember_secrets_of,
    without_masked,
)
from graphrag_eval_lc.masking.rules import MASK, Found
from graphrag_eval_lc.public_names import only_public

__all__ = [
    "MASK",
    "Found",
    "masked_and_found",
    "masked_secrets",
    "masked_text",
    "masked_values",
    "remember_secret",
    "remember_secrets_of",
    "without_masked",
]

__dir__ = only_public(globals())
