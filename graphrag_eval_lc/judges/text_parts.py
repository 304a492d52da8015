"""Texts in parts, where they are too long for a model."""

_LEAST_PART = 200  # characters; what is shorter does not get a request below a model's bound
_BREAKS = ("\n\n", "\n", ". ", " ")
_NEAR_THE_MIDDLE = 0.25  # of the text, on each side


def halves_of(text: str) -> list[str]:
    r"""Return two parts of a text, cut near its middle, between paragraphs, lines, sentences or words where it can be.

    Returns:
        One part, the whole text, where it is too short to be cut.

    Example:
        >>> [part.strip() for part in halves_of("One line.\n" * 30 + "\n" + "Another.\n" * 30)][1][:8]
        'Another.'
    """
    if len(text) < 2 * _LEAST_PART:
        return [text]
    middle, reach = len(text) // 2, int(len(text) * _NEAR_THE_MIDDLE)
    for separator in _BREAKS:
        before = text.rfind(separator, middle - reach, middle)
        after = text.find(separator, middle, middle + reach)
        found = [place for place in (before, after) if place >= 0]
        if found:
            cut = min(found, key=lambda place: abs(place - middle)) + len(separator)
            return [text[:cut], text[cut:]]
    return [text[:middle], text[middle:]]
