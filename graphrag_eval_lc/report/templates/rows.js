// Rows of results as tables: IRIs are shortened, and whole when they are pointed at, copied, found or read aloud.

const ROWS_OF_OUTPUT = 20;
const LONG_IRI = 32;

// Give a cell's text; an IRI by its prefix, or without its middle. What is cut stays in the text, but takes no room.
function cellText(text, prefixes) {
  if (!/^(https?:\/\/|urn:)\S+$/.test(text)) return foreign(text);
  const namespaces = Object.entries(prefixes).filter(([, namespace]) => namespace && text.startsWith(namespace) && text !== namespace);
  const [prefix, namespace] = namespaces.sort(([, one], [, other]) => other.length - one.length)[0] ?? [];
  if (namespace) return shortened("", namespace, text.slice(namespace.length), `${prefix}:`, text);
  if (text.length <= LONG_IRI) return foreign(text);
  const last = Math.max(text.lastIndexOf("/"), text.lastIndexOf("#")) + 1;
  if (last > 0 && last < text.length) return shortened("", text.slice(0, last), text.slice(last), "…", text);
  return shortened(text.slice(0, 18), text.slice(18, -4), text.slice(-4), "…", text);
}

function shortened(before, cut, after, sign, whole) {
  return element("bdi", { class: "iri", title: whole }, before, element("span", { class: "cut", "data-sign": sign }, cut), after);
}

function tableOfRows(caption, heads, bodies, attributes = {}) {
  return scrollBox(element("table", { class: "rows", ...attributes }, element("caption", {}, caption), element("thead", {}, element("tr", {}, heads)), bodies));
}

const ROW_SIGNS = { missing: ["✗", "bad"], extra: ["+", "warn"], equal: ["=", "good"] };

// Give the rows of two results: those that differ, coloured, then those that are in both, folded.
function rowsTable(rows, prefixes) {
  const [missing, extra, equal] = rows.counts;
  const heads = rows.columns.map(([reference, actual, isRequired]) => {
    const names = reference === null ? foreign(actual) : [foreign(reference), reference === actual || (actual === null && !isRequired) ? [] : [" ↔ ", foreign(actual ?? "none")]];
    return element("th", { scope: "col", class: isRequired ? null : "optional" }, names, isRequired ? [] : element("small", {}, " (not required)"));
  });
  const line = (kind, cells, differing = []) =>
    element(
      "tr",
      { class: `row-${kind}` },
      element("th", { scope: "row", class: ROW_SIGNS[kind][1] }, icon(ROW_SIGNS[kind][0]), ` ${kind}`),
      cells.map((cell, index) => {
        const [reference, actual, isRequired] = rows.columns[index];
        const isThere = (kind === "missing" ? reference : actual) !== null;
        const text = cell !== null ? cellText(cell, prefixes) : element("span", { class: "muted" }, isThere ? "unbound" : isRequired ? "no such column" : "");
        return element("td", {}, differing.includes(index) ? element("mark", {}, text) : text);
      }),
    );
  const shown = rows.unlike.length < missing + extra ? `; ${countText(rows.unlike.length)} of them are shown` : "";
  const caption = ["Rows ", element("small", {}, `${countText(missing)} missing, ${countText(extra)} extra, ${countText(equal)} equal${shown}`)];
  const equalRows = element("tbody", { hidden: true }, rows.equal.map((cells) => line("equal", cells)));
  const table = tableOfRows(caption, [element("td"), heads], [element("tbody", {}, rows.unlike.map(([kind, cells, differing]) => line(kind, cells, differing))), equalRows]);
  const notes = (rows.notes ?? []).map((text) => element("p", { class: "warn small" }, icon("⚠"), " ", foreign(text)));
  return rows.equal.length ? [table, notes, foldButton(equalRows, rows.equal.length < equal ? `first ${rows.equal.length} of ${countText(equal)} equal rows` : counted(equal, "equal row"))] : [table];
}

// A button that shows a part of a table, and hides it again.
function foldButton(part, what) {
  const button = element("button", { type: "button", class: "copy", "aria-expanded": "false" }, `Show ${what}`);
  button.addEventListener("click", () => {
    part.hidden = !part.hidden;
    button.setAttribute("aria-expanded", String(!part.hidden));
    button.textContent = `${part.hidden ? "Show" : "Hide"} ${what}`;
  });
  return element("p", { class: "copy-line" }, button);
}

// Give the rows in an output as names of columns and rows of texts; null if it is not SPARQL JSON or a list of objects.
function rowsIn(text) {
  let value;
  try {
    value = JSON.parse(text);
  } catch {
    return null;
  }
  const bindings = value?.results?.bindings;
  const rows = bindings ?? value;
  if (!Array.isArray(rows) || !(rows.length || bindings) || !rows.every((row) => row && typeof row === "object" && !Array.isArray(row))) return null;
  const vars = Array.isArray(value.head?.vars) ? value.head.vars.map(String) : [];
  const names = [...new Set([...vars, ...rows.flatMap(Object.keys)])];
  const shown = (cell) => (bindings && cell && typeof cell === "object" ? cell.value : cell);
  const asText = (cell) => (cell === undefined || cell === null ? null : visible(typeof cell === "object" ? JSON.stringify(cell) : String(cell)));
  return { names: names.map(visible), rows: rows.map((row) => names.map((name) => asText(shown(row[name])))) };
}

const LONGEST_LAID_OUT = 8000;

// Give short JSON over lines; what stands in it stays as it is written.
function laidOut(text) {
  if (text.length > LONGEST_LAID_OUT || !/^\s*[{[]/.test(text)) return text;
  try {
    JSON.parse(text);
  } catch {
    return text;
  }
  let depth = 0;
  const line = () => `\n${"  ".repeat(depth)}`;
  return text.replace(/"(?:[^"\\]|\\.)*"|[{[]\s*[}\]]|[{}[\],:]|\s+/g, (part) => {
    if (/^\s/.test(part)) return "";
    if (part === "{" || part === "[") depth += 1;
    if (part === "}" || part === "]") {
      depth -= 1;
      return `${line()}${part}`;
    }
    return part === ":" ? ": " : ["{", "[", ","].includes(part) ? `${part}${line()}` : part;
  });
}

function outputText(text, label) {
  return [codeBlock(laidOut(text), label), element("p", { class: "copy-line" }, copyButton("Copy output", text))];
}

// Give an output as a table if it has rows, with its text folded; else as text. Of two lists of documents, those that
// the other one does not have are marked.
function outputParts(text, title, prefixes, other = null) {
  const found = rowsIn(text);
  if (!found) return labelled("Output", outputText(text, `Output, ${title}`));
  const { names, rows } = found;
  const [ids, otherIds] = [idsIn(found), other ? idsIn(rowsIn(other)) : null];
  const isMarked = (at) => ids && otherIds && !otherIds.includes(ids[at]);
  const part = rows.length > ROWS_OF_OUTPUT ? `, the first ${ROWS_OF_OUTPUT} are shown` : "";
  const cellOf = (cell) => element("td", {}, cell === null ? element("span", { class: "muted" }, "unbound") : cellText(cell, prefixes));
  const lines = rows.slice(0, ROWS_OF_OUTPUT).map((cells, at) => element("tr", { class: isMarked(at) ? "row-extra" : null }, cells.map(cellOf)));
  const { button, body } = disclosure("The output as text", () => outputText(text, `Output, ${title}`), { classes: "small" });
  const marked = rows.some((_, at) => isMarked(at)) ? "; coloured: not on the other side" : "";
  const heads = names.map((name) => element("th", { scope: "col" }, foreign(name)));
  return [tableOfRows(["Output ", element("small", {}, `${counted(rows.length, "row")}${part}${marked}`)], heads, element("tbody", {}, lines)), button, body];
}

// The ids of documents, as retrievers give them; null for other rows.
function idsIn(found) {
  const place = found ? found.names.indexOf("id") : -1;
  return place < 0 ? null : found.rows.map((cells) => cells[place]);
}
