// What opens beneath a question that flipped: both answers, and the steps side by side.

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

function comparedStep(step, letter) {
  if (!step) return element("p", { class: "muted small" }, `${letter}: no such call`);
  const label = element(
    "span",
    {},
    element("small", {}, letter),
    " ",
    foreign(step.name),
    step.fulfils ? [" ", badge("✓ matched", "good")] : [],
    step.failed ? [" ", badge("✗ error", "bad")] : [],
    isNumber(step.sec) ? [" ", element("small", {}, secondsText(step.sec))] : [],
  );
  const makeBody = () => [
    step.args ? codeBlock(step.args, `Arguments in ${letter}`) : [],
    step.output ? codeBlock(step.output, `Output in ${letter}`) : [],
    step.args || step.output ? [] : element("p", { class: "muted" }, "Nothing more was recorded."),
  ].flat();
  const { button, body } = disclosure(label, makeBody);
  return element("div", {}, button, body);
}

function comparedSteps(detail) {
  const none = "Steps are not shown: none were made, or too many questions flipped to show them all.";
  if (!detail.steps.length) return element("p", { class: "muted" }, none);
  const [a, b] = detail.sides.map(({ letter }) => letter);
  const pairs = detail.steps.map((pair) =>
    element(
      "li",
      {},
      pair.same ? element("span", { class: "same" }, "= the same call") : [],
      comparedStep(pair.a, a),
      comparedStep(pair.b, b),
    ),
  );
  return section("Steps side by side", [], element("ol", { class: "step-pairs" }, pairs));
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
