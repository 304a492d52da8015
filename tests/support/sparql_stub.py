"""A SPARQL endpoint in this process whose responses the test defines."""

import contextlib
from collections.abc import Callable, Iterator
from urllib.parse import parse_qs, urlsplit

from support.unruly_server import Seen, response, unruly

Answer = tuple[int, str, dict[str, str]]


@contextlib.contextmanager
def answering(answer: Callable[[str], Answer]) -> Iterator[str]:
    """Yield the URL of a server. The function returns status, body and headers for a query."""

    def answered(seen: Seen) -> Iterator[bytes]:
        sent = seen.body.decode() if seen.method == "POST" else urlsplit(seen.path).query
        is_form = seen.method == "GET" or seen.headers["content-type"].startswith("application/x-www-form")
        status, text, headers = answer(parse_qs(sent)["query"][0] if is_form else sent)
        yield response(text.encode(), status, **{name.lower().replace("-", "_"): headers[name] for name in headers})

    with unruly(answered) as server:
        yield f"{server.url}/sparql"
