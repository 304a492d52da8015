// The answer with each of its values marked by its verdict; a value opens the row that it comes from, which leads back.

const VERDICTS = {
  row: ["✓", "good", "in a row that the agent found"],
  rounded: ["≈", "good", "rounded, from a row that the agent found"],
  count: ["#", "good", "a count of what the agent found"],
  aggregate: ["Σ", "good", "computed from a column that the agent found"],
  question: ["", "", "from the question"],
  undecided: ["?", "warn", "undecided: it need not be in what the agent found"],
  none: ["✗", "bad", "in nothing that the agent found"],
};

function markedAnswer(detail) {
  const { values, rows } = detail.answer_values;
  const place = element("div", { "aria-live": "polite" });
  const parts = [];
  const text = detail.actual_answer;
  let at = 0;
  for (const value of values) {
    const start = text.indexOf(value.text, at);
    if (start < 0) continue;
    parts.push(text.slice(at, start), valueMark(value, rows, place));
    at = start + value.text.length;
  }
  parts.push(text.slice(at));
  const shown = element("div", { class: "foreign", dir: "auto" }, parts);
  return element("div", { class: "side" }, element("h4", {}, "Actual"), shown, valueCounts(values), place);
}

function valueMark(value, rows, place) {
  const [sign, kind, what] = VERDICTS[value.verdict] ?? VERDICTS.undecided;
  const row = isNumber(value.row) ? rows[value.row] : null;
  const title = value.at ? `${what}: ${value.at}` : what;
  const content = [foreign(value.text), element("span", { class: "sign", "aria-hidden": "true" }, sign), unseen(` (${what})`)];
  if (!row) return element("span", { class: `value ${kind}`, title }, content);
  const button = element("button", { type: "button", class: `value ${kind}`, title }, content);
  button.addEventListener("click", () => {
    place.replaceChildren(valueRow(value, row, button));
    place.firstChild.focus();
  });
  return button;
}

// The row that a value comes from, with its cell marked, and the way back to the value.
function valueRow(value, row, button) {
  const prefixes = datasetPrefixes();
  const cells = row.cells.map((cell, index) => {
    const text = cell === null ? element("span", { class: "muted" }, "unbound") : cellText(cell, prefixes);
    return element("td", {}, row.columns[index] === value.column ? element("mark", {}, text) : text);
  });
  const heads = row.columns.map((name) => element("th", { scope: "col" }, foreign(name)));
  const back = element("button", { type: "button", class: "copy" }, "Back to the value");
  back.addEventListener("click", () => button.focus());
  const table = tableOfRows(["Row of ", foreign(value.text), " ", element("small", {}, foreign(row.address))], heads, element("tbody", {}, element("tr", {}, cells)));
  return element("div", { class: "value-row", tabindex: "-1" }, table, element("p", { class: "copy-line" }, back));
}

function valueCounts(values) {
  const missing = values.filter((value) => value.verdict === "none").length;
  const words = missing ? `${counted(missing, "value")} of ${countText(values.length)} in nothing that the agent found` : `${counted(values.length, "value")} looked up in what the agent found`;
  return element("p", { class: missing ? "bad small" : "muted small" }, words, values.some((value) => isNumber(value.row)) ? "; a value opens its row." : ".");
}
