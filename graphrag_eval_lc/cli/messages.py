"""Messages for people on standard error."""

from rich.console import Console

from graphrag_eval_lc.masking import masked_text


def tell(text: str) -> None:
    """Print a message to standard error, as it is but for secrets, which are masked."""
    Console(stderr=True, soft_wrap=True, highlight=False, markup=False).print(masked_text(text))
