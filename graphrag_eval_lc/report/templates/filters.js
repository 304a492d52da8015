// Which questions are shown, and in which order: read from the address, changed by the form, kept in the address.

const NO_FILTERS = { text: "", template: "", status: "all", metric: "", min: "", max: "", group: "", tool: "", set: "", sort: "" };

// What a row is, the worst first, and the names by which one chooses.
const STATES = { error: "error", wrong: "wrong", undecided: "undecided", partly: "partly right", unscored: "not scored", right: "right" };
const FAILED_STATES = ["error", "wrong", "undecided", "partly"];

function hasFailed(row) {
  return FAILED_STATES.includes(row.s);
}

// What is shown unless the address says otherwise: what failed, where something did.
function firstFilters(lists) {
  const status = FAILED_STATES.some((state) => lists.states.has(state)) ? "failed" : "all";
  return { ...NO_FILTERS, status, metric: lists.metrics[0] ?? "" };
}

function statusChoices(lists) {
  const states = Object.entries(STATES).filter(([state]) => lists.states.has(state));
  const failed = FAILED_STATES.some((state) => lists.states.has(state)) ? [["failed", "not right"]] : [];
  return [...failed, ["all", "all"], ...states];
}

// What this report does not have cannot be chosen, and so is left out.
function filtersFromHash(lists) {
  const parts = hashParts();
  const filters = firstFilters(lists);
  const known = {
    metric: lists.metrics,
    template: lists.templates,
    group: lists.groups,
    tool: lists.tools,
    set: Object.keys(lists.sets),
    status: statusChoices(lists).map(([value]) => value),
    sort: sortChoices(lists).map(([value]) => value),
  };
  for (const name of Object.keys(NO_FILTERS)) {
    if (!Object.hasOwn(parts, name)) continue;
    const isKnown = known[name] ? known[name].includes(parts[name]) : name === "text" || Number.isFinite(Number(parts[name]));
    if (isKnown) filters[name] = parts[name];
  }
  return filters;
}

// What is to be known of a score beside its name; nothing of most.
function displayOf(metric, lists) {
  return lists.displays?.[metric] ?? {};
}

// A failed question has a score of 0, unless the metric says otherwise, as in comparisons and gates; one that was not
// measured has none.
function scoreOf(row, metric, lists) {
  if (Object.hasOwn(row.m, metric)) return row.m[metric];
  if (row.s !== "error") return null;
  const { failed } = displayOf(metric, lists);
  return failed === undefined ? 0 : failed;
}

// Give the worst and the best score of a metric, null where that is not known: of what is not declared, only a score
// from 0 to 1 tells which are good.
function endsOf(metric, lists) {
  const { worst, best } = displayOf(metric, lists);
  if (worst !== undefined) return [worst, best];
  const [low, high] = rangeOf(metric, lists);
  return low === 0 && high === 1 ? [low, high] : [null, null];
}

// Give the lowest and the highest score of a metric.
function rangeOf(metric, lists) {
  return lists.ranges[metric] ?? [0, 1];
}

// What a word of the search is looked for in, where a field stands before it, as in "tool:now".
const SEARCH_FIELDS = {
  id: (row) => row.k,
  question: (row) => row.q,
  template: (row) => row.t,
  status: (row) => STATES[row.s],
  tool: (row, lists) => row.tools.map((tool) => lists.tools[tool]).join(" "),
  why: (row, lists) => lists.groups[row.g] ?? "",
  reason: (row) => row.r ?? "",
  expected: (row) => row.e ?? "",
  answer: (row) => row.a ?? "",
};
const EVERYWHERE = Object.keys(SEARCH_FIELDS).filter((name) => name !== "tool" && name !== "status");

function wordFilter(word, lists) {
  const colon = word.indexOf(":");
  const name = word.slice(0, colon);
  if (colon > 0 && Object.hasOwn(SEARCH_FIELDS, name)) {
    const wanted = word.slice(colon + 1);
    return (row) => SEARCH_FIELDS[name](row, lists).toLowerCase().includes(wanted);
  }
  return (row) => EVERYWHERE.some((field) => SEARCH_FIELDS[field](row, lists).toLowerCase().includes(word));
}

// Give the function that says whether a row is shown.
function rowFilter(filters, lists) {
  const words = wordsOf(filters.text).map((word) => wordFilter(word, lists));
  const keys = filters.set ? new Set(lists.sets[filters.set].keys) : null;
  const tool = filters.tool === "" ? null : lists.tools.indexOf(filters.tool);
  const group = filters.group === "" ? null : lists.groups.indexOf(filters.group);
  const min = filters.min === "" ? -Infinity : Number(filters.min);
  const max = filters.max === "" ? Infinity : Number(filters.max);
  const ranged = filters.min !== "" || filters.max !== "";
  return (row) => {
    if (keys && !keys.has(row.k)) return false;
    if (filters.template && row.t !== filters.template) return false;
    if (filters.status === "failed" ? !hasFailed(row) : filters.status !== "all" && row.s !== filters.status) return false;
    if (tool !== null && !row.tools.includes(tool)) return false;
    if (group !== null && row.g !== group) return false;
    if (ranged) {
      const score = scoreOf(row, filters.metric, lists);
      if (score === null || score < min || score > max) return false;
    }
    return words.every((isFound) => isFound(row));
  };
}

const SORT_VALUES = {
  id: (row) => row.k,
  template: (row) => row.t,
  tok: (row) => row.tok ?? null,
  sec: (row) => row.sec ?? null,
  usd: (row) => row.usd ?? null,
};

// Give the rows in the order that "sort" names, such as "sec" or "-sec" (falling); "" is the worst first, "given" the
// dataset's order.
function sortedRows(rows, sort, lists) {
  if (sort === "given") return rows;
  if (!sort) return worstFirst(rows);
  const descending = sort.startsWith("-");
  const column = descending ? sort.slice(1) : sort;
  const value = SORT_VALUES[column] ?? ((row) => scoreOf(row, column, lists));
  return [...rows].sort((one, other) => compareValues(value(one), value(other), descending));
}

// Errors, then all others that are not right by the score that decided, then what is right; else in the dataset's order.
function worstFirst(rows) {
  const [errors, failed, right] = [[], [], []];
  for (const row of rows) (row.s === "error" ? errors : hasFailed(row) ? failed : right).push(row);
  return [errors, failed, right].flatMap((part) => part.sort((one, other) => (one.v ?? 0) - (other.v ?? 0)));
}

// Let the fields of the form say what the filters are, and which scores the chosen metric can have.
function fillForm(form, filters, lists) {
  fillFields(form, filters);
  const { min, max } = form.elements;
  if (!min) return;
  const [low, high] = rangeOf(filters.metric, lists);
  for (const control of [min, max]) {
    control.min = low;
    control.max = high;
  }
  min.placeholder = plainNumber(low);
  max.placeholder = plainNumber(high);
}

function sortChoices(lists) {
  const named = [
    ["id", "id"],
    ["template", "template"],
    ...lists.metrics.map((metric) => [metric, metric]),
    ["tok", "tokens"],
    ["sec", "time"],
    ...(lists.hasCost ? [["usd", "cost"]] : []),
  ];
  return [["", "worst first"], ["given", "dataset's order"], ...named.flatMap(([value, name]) => [[value, `${name}, rising`], [`-${value}`, `${name}, falling`]])];
}

// Give the form; its fields are named as the filters.
function filterForm(lists) {
  const plain = (value) => [value, value];
  const turned = (way) => [way, `${way} (${countText(lists.sets[way].keys.length)})`, lists.sets[way].label];
  const bound = (name) => element("input", { type: "number", name, step: "any", inputmode: "decimal" });
  const fields = [
    field("Search", element("input", { type: "search", name: "text", placeholder: "words, or why:filter, tool:name", autocomplete: "off", spellcheck: "false", dir: "auto" })),
    field("Status", choice("status", statusChoices(lists))),
    ...(lists.groups.length ? [field("Why", choice("group", [["", "all"], ...lists.groups.map(plain)]))] : []),
    field("Template", choice("template", [["", "all"], ...lists.templates.map(plain)])),
    ...(lists.sets.broken ? [field("Changed", choice("set", [["", "all"], ...["broken", "fixed"].map(turned)]))] : []),
  ];
  if (lists.metrics.length) {
    fields.push(field("Score", choice("metric", lists.metrics.map((metric) => [metric, metric, displayOf(metric, lists).note]))), field("from", bound("min")), field("to", bound("max")));
  }
  if (lists.tools.length) fields.push(field("Used tool", choice("tool", [["", "any"], ...lists.tools.map(plain)])));
  fields.push(field("Sort by", choice("sort", sortChoices(lists))));
  return element("form", { class: "filters", role: "search", "aria-label": "Questions" }, fields);
}
