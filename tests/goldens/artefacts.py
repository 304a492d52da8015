"""Write the outputs of a commit as text files whose differences are readable."""

import base64
import gzip
import json
import re
from pathlib import Path
from typing import Any

import yaml
from masking_times import masked

_BLOCK = re.compile(r"<(script|style)\b([^>]*)>(.*?)</\1>", re.DOTALL)
_HASHES = re.compile(r"'sha256-[^']*'")


class Artefacts:
    """The output folder of one side.

    Args:
        folder: The folder to write to.
        words: Replacements for texts such as this side's paths.
    """

    def __init__(self, folder: Path, words: dict[str, str]) -> None:
        self._folder, self._words = folder, words

    def text(self, name: str, text: str) -> None:
        for word, mark in self._words.items():
            text = text.replace(word, mark)
        path = self._folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")

    def json(self, name: str, value: object) -> None:
        """Write a value as JSON, keeping the order of keys."""
        self.text(name, json.dumps(value, ensure_ascii=False, indent=1, default=repr) + "\n")

    def json_lines(self, name: str, path: Path, *, is_live: bool = False, is_ordered: bool = True) -> None:
        """Write the records of a file, after a line that describes their formatting in the file."""
        if not path.exists():
            self.text(name, f"there is no {path.name}\n")
            return
        lines = path.read_text(encoding="utf-8").splitlines()
        records = [json.loads(line) for line in lines]
        spelled = {
            "plain": [json.dumps(each, ensure_ascii=False) for each in records],
            "ASCII": [json.dumps(each) for each in records],
            "compact": [json.dumps(each, ensure_ascii=False, separators=(",", ":")) for each in records],
            "compact ASCII": [json.dumps(each, separators=(",", ":")) for each in records],
        }
        spelling = next((name for name, texts in spelled.items() if texts == lines), "otherwise")
        if not is_ordered:
            records.sort(key=lambda each: json.dumps(masked(each), sort_keys=True))
        shown = [masked(each) for each in records] if is_live else records
        parts = [json.dumps(each, ensure_ascii=False, indent=1) for each in shown]
        self.text(name, "\n".join([f"{len(lines)} lines of JSON, {spelling}", *parts, ""]))

    def run_folder(self, name: str, folder: Path, *, is_live: bool = False) -> None:
        """Write the contents of a run folder, without its report."""
        self.text(f"{name}/files.txt", "\n".join(sorted(path.name for path in folder.iterdir())) + "\n")
        self.json_lines(f"{name}/results.jsonl", folder / "results.jsonl", is_live=is_live)
        self.json_lines(f"{name}/responses.jsonl", folder / "responses.jsonl", is_live=is_live, is_ordered=False)
        if (folder / "judge_cache.jsonl").exists():
            self.json_lines(f"{name}/judge_cache.jsonl", folder / "judge_cache.jsonl", is_ordered=False)
        aggregates = (folder / "aggregates.yaml").read_text(encoding="utf-8")
        if is_live:
            aggregates = yaml.safe_dump(masked(yaml.safe_load(aggregates)), sort_keys=False, allow_unicode=True)
        self.text(f"{name}/aggregates.yaml", aggregates)
        self.json(f"{name}/run.json", self._run_record(folder, is_live=is_live))

    def _run_record(self, folder: Path, *, is_live: bool) -> Any:
        record = json.loads((folder / "run.json").read_text(encoding="utf-8"))
        if is_live:
            return masked(record)
        return {
            **record,
            **{key: masked(record[key], key) for key in ("run_id", "versions", "times", "scored") if key in record},
        }

    def page(self, name: str, path: Path) -> None:
        """Write a page's HTML without scripts and styles, and its unpacked data."""
        if not path.exists():
            self.text(f"{name}.html", f"there is no {path.name}\n")
            return
        html = path.read_text(encoding="utf-8")
        data: dict[str, Any] = {}
        for tag, attributes, content in _BLOCK.findall(html):
            identifier = re.search(r'id="([^"]+)"', attributes)
            if tag == "script" and identifier:
                is_packed = "text/plain" in attributes
                data[identifier[1]] = json.loads(gzip.decompress(base64.b64decode(content)) if is_packed else content)
        html = _BLOCK.sub(lambda block: f"<{block[1]}{block[2]}></{block[1]}>", html)
        html = _HASHES.sub("<digest>", html)
        html = re.sub(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(\+00:00|Z)", "<moment>", html)
        html = re.sub(r"Made by graphrag-eval-lc [\d.]+", "Made by graphrag-eval-lc <version>", html)
        self.text(f"{name}.html", html)
        if data:
            self.json(f"{name}_data.json", data)
