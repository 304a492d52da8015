import json

from graphrag_eval_lc.demo.documents import DocumentIndex


def index_of(tmp_path, *documents):
    path = tmp_path / "documents.jsonl"
    rows = ({"id": id_, "title": title, "text": text} for id_, title, text in documents)
    path.write_text("\n".join(json.dumps(row) for row in rows) + "\n\n", encoding="utf-8")
    return DocumentIndex(path)


def test_documents_are_found_by_words_of_title_and_text_best_first(tmp_path):
    index = index_of(tmp_path, ("a", "Oil", "A sample."), ("b", "Ice", "Ice on a line."), ("c", "Line", "Long."))
    assert index.search("ICE on the line", 5) == [
        {"id": "b", "text": "Ice. Ice on a line."},
        {"id": "c", "text": "Line. Long."},
    ]


def test_k_limits_the_documents(tmp_path):
    index = index_of(tmp_path, ("a", "Ice", "x"), ("b", "Ice", "y"), ("c", "Ice", "z"))
    assert [document["id"] for document in index.search("ice", 2)] == ["a", "b"]


def test_no_shared_word_finds_nothing(tmp_path):
    assert index_of(tmp_path, ("a", "Ice", "Snow")).search("sun", 5) == []
