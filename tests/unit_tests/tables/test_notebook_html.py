"""The small HTML table."""

from graphrag_eval_lc.tables.notebook_html import facts_html


def test_names_values_and_caption_are_text() -> None:
    html = facts_html("<i>", [("<script>alert(1)</script>", 'a & "b"</td>')])
    assert "<script" not in html
    assert "<i>" not in html
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in html
    assert "a &amp; &quot;b&quot;&lt;/td&gt;" in html
