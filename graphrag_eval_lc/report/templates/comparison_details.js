// What opens beneath a question that changed: both answers, and the steps side by side.

function comparedSide(side, unit) {
  const notes = [amountText(side.score, unit)];
  if (side.failed) notes.push("failed");
  if (side.undecided) notes.push("undecided steps");
  if (side.repeat) notes.push(`repeat ${side.repeat}`);
  return element(
    "div",
    { class: "side" },
    element("h4", {}, side.letter, " ", element("span", { class: "muted" }, notes.join(", "))),
    side.reason ? labelled("Why not in full", foreignBlock(side.reason)) : [],
    side.answer ? labelled("Answer", foreignBlock(side.answer)) : [],
  );
}

// The side of a run; what is not in the call of the other run is marked.
function comparedStep(step, letter, other) {
  if (!step) return element("div", { class: "side" }, element("h5", {}, letter), element("p", { class: "muted" }, "No such call."));
  const title = `${step.name} in ${letter}`;
  return element(
    "div",
    { class: "side" },
    element("h5", {}, `${letter} `, foreign(step.name), isNumber(step.sec) ? [" ", element("small", {}, secondsText(step.sec))] : []),
    callCode(step, title, other ?? {}),
    step.output ? outputParts(step.output, title, { ...prefixesIn(other?.query), ...prefixesIn(step.query) }) : [],
    step.query || step.args || step.output ? [] : element("p", { class: "muted" }, "Nothing more was recorded."),
  );
}

// What became of a step; that it did not match says something only if the other one did.
function comparedBadges(step, letter, other) {
  if (!step) return [];
  const state = step.failed ? ["✗ error", "bad"] : step.fulfils ? ["✓ matched", "good"] : other?.fulfils ? ["✗ not matched", "bad"] : null;
  return state ? badge(`${state[0]} in ${letter}`, state[1]) : [];
}

function isUnchanged(pair) {
  return pair.same && !pair.other;
}

// The sign and the words for what differs between the two steps of a pair.
function differenceOf(pair, b) {
  if (!pair.b) return ["−", `missing in ${b}`];
  if (!pair.a) return ["+", `only in ${b}`];
  if (!pair.same) return ["≠", "another call"];
  return pair.other ? ["≠", "the same call, another output"] : ["=", "the same call and output"];
}

function comparedSteps(detail) {
  const none = "Steps are not shown: none were made, or too many questions changed to show them all.";
  if (!detail.steps.length) return element("p", { class: "muted" }, none);
  const [a, b] = detail.sides.map(({ letter }) => letter);
  const first = detail.steps.find((pair) => !isUnchanged(pair));
  const items = detail.steps.map((pair) => {
    const names = [...new Set([pair.a, pair.b].filter(Boolean).map(({ name }) => name))];
    const [sign, words] = differenceOf(pair, b);
    const label = [
      element("span", { class: "status" }, icon(sign), ` ${words}`),
      element("span", { class: "strong" }, names.flatMap((name, index) => [index ? " ↔ " : "", foreign(name)])),
      comparedBadges(pair.a, a, pair.b),
      comparedBadges(pair.b, b, pair.a),
    ];
    const makeBody = () => element("div", { class: "sides" }, comparedStep(pair.a, a, pair.b), comparedStep(pair.b, b, pair.a));
    const { button, body } = disclosure(label, makeBody, { classes: "step-head", isOpen: pair === first });
    return element("li", { class: "step" }, button, body);
  });
  return section("Steps side by side", [], element("ol", { class: "steps" }, items));
}

function detailParts(detail, row) {
  const { unit } = storedJson("lists");
  const other = detail.sides[1].letter;
  return [
    linkLine(row.k, `run=${other}&`),
    detail.question === row.q ? [] : labelled("Question", foreignBlock(detail.question)),
    detail.reference_answer ? labelled("Reference answer", foreignBlock(detail.reference_answer)) : [],
    element("div", { class: "sides" }, detail.sides.map((side) => comparedSide(side, unit))),
    comparedSteps(detail),
  ].flat();
}
