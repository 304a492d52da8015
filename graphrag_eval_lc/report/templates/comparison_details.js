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

function comparedBadges(step, letter) {
  if (!step) return badge(`not in ${letter}`);
  return step.failed ? badge(`✗ error in ${letter}`, "bad") : step.fulfils ? badge(`✓ matched in ${letter}`, "good") : [];
}

function comparedSteps(detail) {
  const none = "Steps are not shown: none were made, or too many questions flipped to show them all.";
  if (!detail.steps.length) return element("p", { class: "muted" }, none);
  const [a, b] = detail.sides.map(({ letter }) => letter);
  const first = detail.steps.find((pair) => !pair.same);
  const items = detail.steps.map((pair) => {
    const names = [...new Set([pair.a, pair.b].filter(Boolean).map(({ name }) => name))];
    const label = [
      element("span", { class: "status" }, icon(pair.same ? "=" : "≠"), pair.same ? " the same call" : " another call"),
      element("span", { class: "strong" }, names.flatMap((name, index) => [index ? " ↔ " : "", foreign(name)])),
      comparedBadges(pair.a, a),
      comparedBadges(pair.b, b),
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
