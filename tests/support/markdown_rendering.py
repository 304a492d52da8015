"""Render Markdown to the tags and the text that a reader sees."""

from html.parser import HTMLParser

from markdown_it import MarkdownIt

_MARKDOWN = MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"])


class _Page(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.texts: list[str] = []

    def handle_starttag(self, tag: str, attrs: object) -> None:
        self.tags.append(tag)

    def handle_data(self, data: str) -> None:
        self.texts.append(data)


def rendered(markdown: str) -> tuple[list[str], str]:
    """Return the tags in document order, and the text."""
    page = _Page()
    page.feed(_MARKDOWN.render(markdown))
    page.close()
    return page.tags, "".join(page.texts)
