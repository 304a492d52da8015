// What a model call opens to: its place, and if the run kept them the messages that are new with it.

function messageBlock(message) {
  const head = [element("span", { class: "strong" }, foreign(message.role))];
  if (message.name) head.push(" ", foreign(message.name));
  if (message.answers) head.push(" ", element("span", { class: "muted" }, "answers call ", foreign(message.answers)));
  if (message.is_error) head.push(" ", badge("✗ error", "bad"));
  const parts = [element("p", { class: "message-head" }, head)];
  if (message.reasoning) parts.push(labelled("Reasoning", foreignBlock(message.reasoning)));
  if (message.text) parts.push(foreignBlock(message.text));
  for (const call of message.calls ?? []) {
    const label = ["Calls ", foreign(call.name), call.id ? [" as ", foreign(call.id)] : []];
    parts.push(labelled(label, call.args ? codeBlock(call.args, `Arguments of ${call.name}`) : []));
    if (call.error) parts.push(labelled("Not valid", foreignBlock(call.error), "bad"));
  }
  if (message.note) parts.push(element("p", { class: "muted small" }, message.note));
  if (parts.length === 1) parts.push(element("p", { class: "muted" }, "Empty."));
  return element("li", { class: `message ${message.role === "assistant" ? "of-model" : ""}` }, parts);
}

function messageList(places, messages) {
  return element("ol", { class: "messages" }, places.map((place) => messages[place]).filter(Boolean).map(messageBlock));
}

function modelCallBody(call, messages) {
  const place = [call.agent, call.node].filter(Boolean).flatMap((name, index) => [index ? ", " : "", foreign(name)]);
  const said = [
    place.length ? [place] : [],
    call.step ? [["in call ", foreign(call.step)]] : [],
    isNumber(call.first_token) ? [`first token after ${secondsText(call.first_token)}`] : [],
    call.finish ? [["ended by ", foreign(call.finish)]] : [],
  ].flat();
  const parts = said.length ? [element("p", { class: "muted small" }, said.flatMap((part, index) => [index ? "; " : "", part]))] : [];
  const before = (call.before ?? []).flatMap(([start, stop]) => Array.from({ length: stop - start }, (_, index) => start + index));
  if (before.length) {
    const label = `${counted(before.length, "message")} known from earlier calls`;
    const { button, body } = disclosure(label, () => messageList(before, messages), { classes: "small" });
    parts.push(button, body);
  }
  if (call.new?.length) parts.push(element("h4", {}, before.length ? "New" : "Given"), messageList(call.new, messages));
  if (call.tools?.length) {
    const names = call.tools.flatMap((name, index) => [index ? ", " : "", foreign(name)]);
    parts.push(element("p", { class: "muted small" }, "Tools: ", names));
  }
  if (isNumber(call.gave)) parts.push(element("h4", {}, "Gave"), messageList([call.gave], messages));
  if (call.error) parts.push(labelled("Error", foreignBlock(call.error), "bad"));
  return parts.length ? parts : [element("p", { class: "muted" }, "Nothing more was recorded.")];
}
