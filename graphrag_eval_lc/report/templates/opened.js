// What opens beneath a question of a list: its parts, of which each page has its own (detailParts).

function section(title, notes, ...content) {
  return element("section", {}, element("h3", {}, title, " ", notes), content);
}

function labelled(label, content, kind = "") {
  return element("div", { class: `labelled ${kind}` }, element("span", { class: "label" }, label), content);
}

// A link to a question, whose address may say more before its key.
function linkLine(key, before = "", more = []) {
  const link = element("a", { href: `#${before}q=${encodeURIComponent(key)}` }, "Link to this question");
  return element("p", { class: "link-line" }, link, copyButton("Copy link", link.href), copyButton("Copy id", key), more);
}

// Fill a place with a question's details, or with why they cannot be shown.
async function fillDetail(place, row) {
  try {
    const detail = await detailsOf(row);
    if (!detail) throw new Error("The details of this question are not in this file.");
    place.replaceChildren(...detailParts(detail, row));
  } catch (problem) {
    place.replaceChildren(element("p", { class: "bad" }, icon("✗"), ` ${problem.message}`));
  }
}
