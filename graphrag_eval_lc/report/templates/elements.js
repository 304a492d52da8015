// Making elements. Texts only ever become text nodes and attributes, never markup.

function element(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    made.setAttribute(name, value === true ? "" : value);
  }
  made.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined));
  return made;
}

// What hides in a text that was JSON before, as texts.py shows it: pictures of control characters, codes of the others.
const UNSEEN = /[\u0000-\u001f\u007f-\u009f\u00ad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u2069\ufeff\ufff9-\ufffb\ud800-\udfff\u{e0000}-\u{e007f}]/gu;

function visible(text) {
  return text.replace(UNSEEN, (character) => {
    const code = character.codePointAt(0);
    return code < 32 ? String.fromCharCode(0x2400 + code) : `⟨U+${code.toString(16).toUpperCase().padStart(4, "0")}⟩`;
  });
}

// A text that is not ours: it keeps its own direction, and cannot turn ours round.
function foreign(text) {
  return element("bdi", {}, String(text));
}

// A block of such text, with its line breaks.
function foreignBlock(text) {
  return element("div", { class: "foreign", dir: "auto" }, String(text));
}

// Code, arguments and outputs: they scroll in their own box, which the keyboard reaches.
function codeBlock(text, label) {
  return element("pre", { class: "code", dir: "auto", tabindex: "0", role: "group", "aria-label": label }, text);
}

function badge(text, kind = "") {
  return element("span", { class: `badge ${kind}` }, text);
}

function icon(sign) {
  return element("span", { "aria-hidden": "true", class: "icon" }, sign);
}

// A name that may be broken after its underscores.
function breakable(name) {
  return element("bdi", {}, String(name).split(/(?<=_)/).flatMap((part, index) => (index ? [element("wbr"), part] : [part])));
}

// A text that only screen readers say.
function unseen(text) {
  return element("span", { class: "unseen" }, text);
}

let disclosedCount = 0;

// A button and the part that it opens, which is made when it is first opened.
function disclosure(label, makeBody, { classes = "", tag = "div", isOpen = false } = {}) {
  disclosedCount += 1;
  const body = element(tag, { id: `disclosed-${disclosedCount}`, class: "disclosed", hidden: true });
  const button = element(
    "button",
    { type: "button", class: `disclosure ${classes}`, "aria-expanded": "false", "aria-controls": body.id },
    label,
  );
  const toggle = () => {
    const opens = button.getAttribute("aria-expanded") === "false";
    if (opens && !body.hasChildNodes()) body.append(...[makeBody()].flat(Infinity));
    button.setAttribute("aria-expanded", String(opens));
    body.hidden = !opens;
  };
  button.addEventListener("click", toggle);
  if (isOpen) toggle();
  return { button, body };
}

// A button that copies a text, and says whether it could.
function copyButton(label, text, title = null) {
  const button = element("button", { type: "button", class: "copy", title }, label);
  const said = element("span", { role: "status", class: "muted" });
  button.addEventListener("click", async () => {
    try {
      await navigator.clipboard.writeText(text);
      said.textContent = " Copied.";
    } catch {
      said.textContent = " The browser does not allow it; select the text and copy it.";
    }
  });
  return [button, said];
}
