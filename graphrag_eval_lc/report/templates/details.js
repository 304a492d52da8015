// What a question's row shows when it is opened.

function measureTable(measures, caption) {
  const rows = measures.map((measure) => {
    const cost = isNumber(measure.usd) ? element("span", { class: "muted small" }, ` ${dollarsText(measure.usd)}`) : [];
    const why = measure.error ? [badge("✗ error", "bad"), " ", foreign(measure.error)] : measure.reason ? foreign(measure.reason) : [];
    return element(
      "tr",
      {},
      element("th", { scope: "row", title: measure.note }, breakable(measure.name)),
      element("td", { class: "number" }, measure.unit && isNumber(measure.value) ? amountText(measure.value, measure.unit) : valueText(measure.value), cost),
      element("td", { class: "prose" }, why),
    );
  });
  const heads = [
    element("th", { scope: "col" }, "Measure"),
    element("th", { scope: "col", class: "number" }, "Value"),
    measures.some((measure) => measure.reason || measure.error) ? element("th", { scope: "col" }, "Why") : element("td"),
  ];
  return element(
    "table",
    { class: "measures" },
    element("caption", { class: "unseen" }, caption),
    element("thead", {}, element("tr", {}, heads)),
    element("tbody", {}, rows),
  );
}

function claimList(title, sign, kind, claims) {
  if (!claims?.length) return [];
  return [
    element("h4", { class: kind }, icon(sign), ` ${title} `, element("small", {}, String(claims.length))),
    element("ul", { class: `claims ${kind}` }, claims.map((claim) => element("li", {}, foreign(claim)))),
  ];
}

function answersSection(detail) {
  const side = (title, text, without) =>
    element(
      "div",
      { class: "side" },
      element("h4", {}, title),
      text ? foreignBlock(text) : element("p", { class: "muted" }, without),
    );
  const claims = detail.claims ?? {};
  const reason = claims.reason ? element("p", { class: "muted" }, foreign(claims.reason)) : [];
  return section(
    "Answer",
    [],
    element(
      "div",
      { class: "sides" },
      side("Reference", detail.reference_answer, "The dataset has no reference answer."),
      detail.answer_values && detail.actual_answer ? markedAnswer(detail) : side("Actual", detail.actual_answer, "The agent gave no answer."),
    ),
    claimList("Supported claims", "✓", "good", claims.supported),
    claimList("Wrong claims", "✗", "bad", claims.wrong),
    claimList("Missing claims", "○", "warn", claims.missing),
    reason,
  );
}

function warningsSection(detail) {
  const attempts = (detail.failed_attempts ?? []).map((attempt) =>
    element("li", {}, foreign(attempt.error), element("span", { class: "muted" }, ` ${secondsText(attempt.seconds)}, ${countText(attempt.tokens)} tokens, ${counted(attempt.calls, "call")}`)),
  );
  const parts = [];
  if (detail.warnings?.length) {
    parts.push(element("ul", {}, detail.warnings.map((text) => element("li", {}, icon("⚠"), " ", foreign(text)))));
  }
  if (attempts.length) parts.push(element("p", {}, "Attempts that failed before:"), element("ol", {}, attempts));
  return parts.length ? section("Warnings", [], parts) : [];
}

// By what LangSmith and others find the run.
function traceLine(detail) {
  if (!detail.run_id) return [];
  const started = detail.started_at ? [", started at ", foreign(detail.started_at)] : [];
  return element("p", { class: "muted small" }, "LangChain's run ", foreign(detail.run_id), started);
}

// All that the page has of a question; laid out only when it is opened.
function rawSection(detail) {
  const { button, body } = disclosure("As JSON", () => {
    const text = JSON.stringify(detail, null, 2);
    return [codeBlock(text, "The question as JSON"), element("p", { class: "copy-line" }, copyButton("Copy JSON", text))];
  });
  return element("section", { class: "raw" }, button, body);
}

// The command that asks the question again, if the run's agent and dataset can be named in one.
function againButton(detail) {
  const { again } = storedJson("lists");
  if (!again) return [];
  return copyButton("Copy command", `${again} --question '${detail.id.replaceAll("'", "'\\''")}'`, "The command that asks this question again");
}

function detailParts(detail, row) {
  return [
    linkLine(detail.key, "", againButton(detail)),
    detail.question === row.q ? [] : labelled("Question", foreignBlock(detail.question)),
    detail.error ? labelled("✗ Error", foreignBlock(detail.error), "bad") : [],
    stepsSection(detail, hasFailed(row)),
    answersSection(detail),
    noteSection(detail),
    timelineSection(detail),
    detail.measures?.length ? section("Measures", [], measureTable(detail.measures, "Measures of the question")) : [],
    warningsSection(detail),
    traceLine(detail),
    rawSection(detail),
  ].flat();
}
