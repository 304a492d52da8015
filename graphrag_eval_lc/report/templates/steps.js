// Each reference step beside the actual step that it matched, or the nearest one and why that does not fit.

const STEP_SIGNS = {
  matched: ["✓", "matched", "good"],
  part: ["≈", "in part", "warn"],
  near: ["≈", "near", "warn"],
  undecided: ["?", "undecided", "undecided"],
  missing: ["✗", "missing", "bad"],
  unscored: ["·", "not scored", ""],
};

// The side of a step; what is not in the arguments of the other side is marked.
function stepSide(title, name, step, other = {}) {
  const parts = [element("h5", {}, title, " ", element("span", { class: "muted" }, foreign(name)))];
  if (step.args) {
    parts.push(codeBlock(markedText(step.args, other.args), `Arguments, ${title}`));
    parts.push(element("p", { class: "copy-line" }, copyButton("Copy arguments", step.args)));
  }
  if (step.error) parts.push(labelled("Error", foreignBlock(step.error), "bad"));
  if (step.output) parts.push(labelled("Output", codeBlock(step.output, `Output, ${title}`)));
  return element("div", { class: "side" }, parts);
}

const MOST_TOKENS = 1500;

// Words, and all other characters one by one; white space belongs to none.
function tokensOf(text) {
  return text.match(/\s+|[\p{L}\p{N}_.:?$#-]+|./gsu) ?? [];
}

// Give a text in pieces, of which those that another text does not have are marked; white space and order of spaces do
// not count.
function markedText(text, other) {
  if (!other || other === text) return text;
  const mine = tokensOf(text);
  const words = mine.filter((token) => token.trim());
  const theirs = tokensOf(other).filter((token) => token.trim());
  if (words.length > MOST_TOKENS || theirs.length > MOST_TOKENS) return text;
  const shared = sharedPlaces(words, theirs);
  let place = -1;
  return mine.map((token) => {
    if (!token.trim()) return token;
    place += 1;
    return shared.has(place) ? token : element("mark", {}, token);
  });
}

// Give the places of the longest run of words that both lists have in the same order.
function sharedPlaces(words, others) {
  const width = others.length + 1;
  const lengths = new Uint16Array((words.length + 1) * width);
  for (let at = words.length - 1; at >= 0; at -= 1) {
    for (let to = others.length - 1; to >= 0; to -= 1) {
      const here = at * width + to;
      lengths[here] = words[at] === others[to] ? lengths[here + width + 1] + 1 : Math.max(lengths[here + width], lengths[here + 1]);
    }
  }
  const places = new Set();
  for (let at = 0, to = 0; at < words.length && to < others.length; ) {
    const here = at * width + to;
    if (words[at] === others[to]) {
      places.add(at);
      at += 1;
      to += 1;
    } else if (lengths[here + width] >= lengths[here + 1]) at += 1;
    else to += 1;
  }
  return places;
}

function rowsTable(rows) {
  const names = rows.columns.map(([reference, actual]) =>
    element("th", { scope: "col" }, foreign(reference), reference === actual ? [] : [" ↔ ", foreign(actual ?? "none")]),
  );
  const shown = rows.missing.length + rows.extra.length;
  const all = rows.missing_count + rows.extra_count;
  const part = shown < all ? `; ${countText(shown)} of them are shown` : "";
  const cellText = (cell, column) => (cell !== null ? foreign(cell) : element("span", { class: "muted" }, column[1] === null ? "no such column" : "unbound"));
  const line = (sign, word, kind) => (cells) =>
    element(
      "tr",
      {},
      element("th", { scope: "row", class: kind }, icon(sign), ` ${word}`),
      cells.map((cell, index) => element("td", {}, cellText(cell, rows.columns[index] ?? []))),
    );
  return scrollBox(
    element(
      "table",
      { class: "rows" },
      element("caption", {}, "Rows ", element("small", {}, `${countText(rows.missing_count)} missing, ${countText(rows.extra_count)} extra${part}`)),
      element("thead", {}, element("tr", {}, element("td"), names)),
      element("tbody", {}, rows.missing.map(line("✗", "missing", "bad")), rows.extra.map(line("+", "extra", "warn"))),
    ),
  );
}

function referenceStep(step, number, detail, isOpen) {
  const isPart = step.in_part && step.status === "matched";
  const [sign, word, kind] = STEP_SIGNS[isPart ? "part" : step.status] ?? STEP_SIGNS.unscored;
  const actual = step.actual === null || step.actual === undefined ? null : detail.timeline[step.actual];
  const head = [
    element("span", { class: `status ${kind}` }, icon(sign), ` ${word}`),
    element("span", { class: "strong" }, `${number} `, foreign(step.name)),
    isNumber(step.score) ? element("span", { class: "number" }, scoreText(step.score)) : [],
    step.reason ? element("span", { class: "why" }, foreign(step.reason)) : [],
  ];
  const { button, body } = disclosure(
    head,
    () => {
      const actualSide = actual
        ? stepSide(step.status === "matched" ? "Actual" : "Nearest actual", actual.name, actual, step.reference)
        : element("div", { class: "side" }, element("h5", {}, "Actual"), element("p", { class: "muted" }, "No step comes near."));
      const parts = [];
      if (step.rows) parts.push(rowsTable(step.rows));
      parts.push(element("div", { class: "sides" }, stepSide("Reference", step.name, step.reference, actual ?? {}), actualSide));
      return parts;
    },
    { classes: "step-head", isOpen },
  );
  return element("li", { class: `step ${step.status}` }, button, body);
}

// The step that explains a failure: the first of the last group that has one that is not fulfilled.
function wrongStep(detail) {
  const isWrong = (step) => step.status !== "matched" || step.score < 1;
  return detail.groups.findLast((steps) => steps.some(isWrong))?.find(isWrong);
}

function stepsSection(detail, hasFailed) {
  const wrong = hasFailed ? wrongStep(detail) : null;
  const groups = detail.groups.map((steps, index) => [
    element(
      "h4",
      {},
      `Group ${index + 1} of ${detail.groups.length}`,
      steps.every((step) => !step.scored) ? element("small", {}, " not scored") : [],
    ),
    element("ol", { class: "steps" }, steps.map((step, position) => referenceStep(step, position + 1, detail, step === wrong))),
  ]);
  if (!groups.length) return [];
  const extra = (detail.extra_steps ?? []).map((index) => detail.timeline[index]?.name).filter((name) => name !== undefined);
  const names = [...new Set(extra)].flatMap((name, index) => {
    const count = extra.filter((other) => other === name).length;
    return [index ? ", " : "", foreign(name), count > 1 ? ` ×${count}` : ""];
  });
  if (names.length) groups.push(element("p", { class: "muted" }, "Calls that no reference step asked for: ", names));
  if (detail.counts?.repeated) groups.push(element("p", { class: "muted" }, `${counted(detail.counts.repeated, "call")} repeated an earlier one.`));
  return section("Reference steps", [], groups);
}
