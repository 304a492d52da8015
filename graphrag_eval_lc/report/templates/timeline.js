// What an agent did on a question, in real time: a bar for each call of a tool or a model, indented inside its caller.

// Give the end of the last event in seconds; null where times are not known, or not to the second.
function timelineEnd(events) {
  const ends = events.filter((event) => isNumber(event.start)).map((event) => event.start + (event.duration ?? 0));
  const end = Math.max(0, ...ends);
  return end > 0 ? end : null;
}

function timelineBar(event, end) {
  const track = element("span", { class: "bar-track", "aria-hidden": "true" });
  if (end === null || !isNumber(event.start)) return track;
  const bar = element("span", { class: `bar ${event.kind} ${event.status === "error" ? "error" : ""}` });
  bar.style.insetInlineStart = `${(100 * event.start) / end}%`;
  bar.style.inlineSize = `${(100 * (event.duration ?? 0)) / end}%`;
  track.append(bar);
  return track;
}

function timelineTime(event) {
  if (isNumber(event.duration)) return secondsText(event.duration);
  return isNumber(event.start) && event.start > 0 ? `at ${secondsText(event.start)}` : "";
}

// The words by which providers say that an answer was cut or held back.
const UNUSUAL_ENDS = /length|max|filter|refusal|safety|malformed/i;

function timelineBadges(event) {
  const badges = [];
  if (event.status === "error") badges.push(badge("✗ error", "bad"));
  if (event.attempts > 1) badges.push(badge(`${countText(event.attempts)} tries`, "warn"));
  if (event.cached) badges.push(badge("cached"));
  if (event.finish && UNUSUAL_ENDS.test(event.finish)) badges.push(badge(event.finish, "warn"));
  if (event.used_for) badges.push(badge(event.used_for, event.used_for.startsWith("✓") ? "good" : "warn"));
  return badges;
}

function timelineLabel(event, end) {
  const name = element("span", { class: "event-name" }, foreign(event.name));
  const started = isNumber(event.start) && isNumber(event.duration) ? unseen(`, started at ${secondsText(event.start)}, took `) : unseen(", ");
  name.style.paddingInlineStart = `${Math.min(event.depth ?? 0, 8) * 0.9}rem`;
  if (event.kind === "model") name.append(" ", element("span", { class: "muted" }, ["model", isNumber(event.tokens) ? `${countText(event.tokens)} tokens` : null, event.usd ? dollarsText(event.usd) : null].filter(Boolean).join(", ")));
  return [
    name,
    element("span", { class: "event-badges" }, timelineBadges(event)),
    started,
    timelineBar(event, end),
    element("span", { class: "event-time" }, timelineTime(event)),
  ];
}

function eventBody(event) {
  const parts = [];
  if (event.error) parts.push(labelled("Error", foreignBlock(event.error), "bad"));
  if (event.note) parts.push(labelled("Note", foreignBlock(event.note), "warn"));
  parts.push(callCode(event, event.name));
  if (event.output) parts.push(outputParts(event.output, event.name, { ...datasetPrefixes(), ...prefixesIn(event.query) }));
  if (event.tool_error) parts.push(labelled("The tool's own error, before the agent changed it", foreignBlock(event.tool_error), "warn"));
  if (event.tool_output) {
    const title = "The tool's own output, before the agent changed it";
    parts.push(labelled(title, codeBlock(laidOut(event.tool_output), `Own output of ${event.name}`)));
  }
  if (event.measures?.length) parts.push(measureTable(event.measures, "Measures of the step"));
  if (event.id) parts.push(element("p", { class: "muted small" }, "Call ", foreign(event.id)));
  return parts.flat().length ? parts : [element("p", { class: "muted" }, "Nothing more was recorded.")];
}

// The ends of the bars' axis; what screen readers need of it each call says itself.
function timelineAxis(end) {
  if (end === null) return [];
  const ends = element("span", { class: "axis-ends" }, element("span", {}, "0 s"), element("span", {}, secondsText(end)));
  return element("div", { class: "event event-axis", "aria-hidden": "true" }, ends);
}

// What of a question's time no bar shows.
function timelineNote(detail, end) {
  if (detail.timeline_note) return foreign(detail.timeline_note);
  const outside = isNumber(detail.total_sec) && end !== null ? detail.total_sec - end : 0;
  if (outside <= 0.01 * detail.total_sec) return [];
  return `Of the ${secondsText(detail.total_sec)}, ${secondsText(outside)} passed before the first call and after the last one.`;
}

// All calls in the order in which they began; what has no time stays where it is.
function timelineEvents(detail) {
  const calls = (detail.transcript?.calls ?? []).map((call) => ({ ...call, kind: "model", name: call.model, duration: call.seconds, status: call.error ? "error" : "success" }));
  const begun = (event) => (isNumber(event.start) ? event.start : Infinity);
  return [...calls, ...detail.timeline].sort((one, other) => begun(one) - begun(other));
}

function timelineSection(detail) {
  const events = timelineEvents(detail);
  const end = timelineEnd(events);
  const list = element("ol", { class: "timeline" });
  for (const event of events) {
    const body = () => (event.kind === "model" ? modelCallBody(event, detail.transcript.messages) : eventBody(event));
    const opened = disclosure(timelineLabel(event, end), body, { classes: "event" });
    list.append(element("li", { class: event.kind }, opened.button, opened.body));
  }
  const total = isNumber(detail.total_sec) ? `, ${secondsText(detail.total_sec)} in all` : "";
  const known = end === null ? "; when they ran was not recorded" : "";
  const note = element("small", {}, `${counted(events.length, "call")}${total}${known}`);
  const leftOut = detail.transcript?.left_out ? element("p", { class: "muted" }, `${counted(detail.transcript.left_out, "more model call")} in responses.jsonl.`) : [];
  return section(
    "Timeline",
    [note],
    events.length ? [timelineAxis(end), list, leftOut, element("p", { class: "muted small" }, timelineNote(detail, end))] : element("p", { class: "muted" }, "No steps."),
    detail.transcript?.models.length ? modelTable(detail.transcript.models) : [],
  );
}

function modelTable(models) {
  const heads = ["Model", "Calls", "Failed", "Tokens", "Time", "Cost"];
  const row = (model) => [countText(model.calls), countText(model.failed), countText(model.tokens), secondsText(model.seconds), dollarsText(model.usd)];
  return scrollBox(
    element(
      "table",
      { class: "models" },
      element("caption", { class: "unseen" }, "Calls of models"),
      element("thead", {}, element("tr", {}, heads.map((head, index) => element("th", { scope: "col", class: index ? "number" : null }, head)))),
      element(
        "tbody",
        {},
        models.map((model) =>
          element("tr", {}, element("th", { scope: "row" }, foreign(model.model)), row(model).map((text) => element("td", { class: "number nowrap" }, text))),
        ),
      ),
    ),
  );
}
