// Each reference step beside the actual step that it matched, or the nearest one and why that does not fit.

const STEP_SIGNS = {
  matched: ["✓", "matched", "good"],
  part: ["≈", "in part", "warn"],
  near: ["✗", "differs", "bad"],
  undecided: ["?", "undecided", "undecided"],
  missing: ["✗", "missing", "bad"],
  unscored: ["·", "not scored", ""],
  vain: ["✗", "failed, not scored", "bad"],
};

// The side of a step; what is not in the query or the arguments of the other side is marked.
function stepSide(title, name, step, other, prefixes, more = []) {
  const parts = [element("h5", {}, title, " ", element("span", { class: "muted" }, foreign(name))), callCode(step, title, other)];
  if (step.error) parts.push(labelled("Error", foreignBlock(step.error), "bad"));
  if (step.output) parts.push(outputParts(step.output, title, prefixes, other.output));
  return element("div", { class: "side" }, parts, more);
}

function referenceStep(step, group, place, detail, isOpen) {
  const isPart = step.status === "matched" && step.score < 1;
  const status = isPart ? "part" : step.status === "unscored" && isVain(step) ? "vain" : step.status;
  const [sign, word, kind] = STEP_SIGNS[status] ?? STEP_SIGNS.unscored;
  const actual = step.actual === null || step.actual === undefined ? null : detail.timeline[step.actual];
  const head = [
    element("span", { class: `status ${kind}` }, icon(sign), ` ${word}`),
    element("span", { class: "strong" }, `Step ${place + 1}: `, foreign(step.name)),
    isNumber(step.score) ? element("span", { class: "number" }, scoreText(step.score)) : [],
    step.reason ? element("span", { class: "why" }, foreign(step.reason)) : [],
  ];
  const { button, body } = disclosure(
    head,
    () => {
      const prefixes = { ...datasetPrefixes(), ...prefixesIn(step.reference.query), ...prefixesIn(actual?.query) };
      const canAccept = actual && step.status !== "matched" && actual.status !== "error" && actual.output && step.reference.output;
      const accept = canAccept ? acceptBox(detail, group, place, step.actual) : [];
      const actualSide = actual
        ? stepSide(step.status === "matched" ? "Actual" : "Nearest actual", actual.name, actual, step.reference, prefixes, accept)
        : element("div", { class: "side" }, element("h5", {}, "Actual"), element("p", { class: "muted" }, "No step comes near."));
      const parts = [];
      if (step.rows) parts.push(rowsTable(step.rows, prefixes));
      parts.push(element("div", { class: "sides" }, stepSide("Reference", step.name, step.reference, actual ?? {}, prefixes), actualSide));
      return parts;
    },
    { classes: "step-head", isOpen },
  );
  return element("li", { class: `step ${step.status}` }, button, body);
}

// A call was made for the step, and it is worth nothing.
function isVain(step) {
  return isNumber(step.actual) && step.score === 0 && !step.may_fit;
}

// The step that explains a failure: the first of the last group that has one that is not fulfilled; if nothing was called
// for it, one before it for which a call was made in vain.
function wrongStep(detail) {
  const wrong = [...detail.groups].reverse().flatMap((steps) => steps.filter((step) => step.score < 1 || (step.scored && step.status !== "matched")));
  return isNumber(wrong[0]?.actual) ? wrong[0] : (wrong.find(isVain) ?? wrong[0]);
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
    element("ol", { class: "steps" }, steps.map((step, place) => referenceStep(step, index, place, detail, step === wrong))),
  ]);
  if (!groups.length) return [];
  const extra = (detail.extra_steps ?? []).map((index) => detail.timeline[index]?.name).filter((name) => name !== undefined);
  const names = [...new Set(extra)].flatMap((name, index) => {
    const count = extra.filter((other) => other === name).length;
    return [index ? ", " : "", foreign(name), count > 1 ? ` ×${count}` : ""];
  });
  if (names.length) groups.push(element("p", { class: "muted" }, "Calls that match no reference step: ", names));
  if (detail.counts?.repeated) groups.push(element("p", { class: "muted" }, `${counted(detail.counts.repeated, "call")} repeated an earlier one.`));
  return section("Reference steps", [], groups);
}
