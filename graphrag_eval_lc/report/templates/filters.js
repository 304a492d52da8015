// Which questions are shown, and in which order: read from the address, changed by the form, kept in the address.

const NO_FILTERS = { text: "", template: "", status: "", metric: "", min: "", max: "", tool: "", set: "", sort: "" };

// What this report does not have cannot be chosen, and so is left out.
function filtersFromHash(lists) {
  const parts = hashParts();
  const filters = { ...NO_FILTERS, metric: lists.metrics[0] ?? "" };
  const known = {
    metric: lists.metrics,
    template: lists.templates,
    tool: lists.tools,
    set: Object.keys(lists.sets),
    status: ["success", "error"],
    sort: sortChoices(lists).map(([value]) => value),
  };
  for (const name of Object.keys(NO_FILTERS)) {
    if (!Object.hasOwn(parts, name)) continue;
    const isKnown = known[name] ? known[name].includes(parts[name]) : name === "text" || Number.isFinite(Number(parts[name]));
    if (isKnown) filters[name] = parts[name];
  }
  return filters;
}

function keepFiltersInHash(filters, lists, section = "") {
  keepInHash(filters, section, { metric: lists.metrics[0] });
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

// Give the function that says whether a row is shown.
function rowFilter(filters, lists) {
  const words = wordsOf(filters.text);
  const keys = filters.set ? new Set(lists.sets[filters.set].keys) : null;
  const tool = filters.tool === "" ? null : lists.tools.indexOf(filters.tool);
  const min = filters.min === "" ? -Infinity : Number(filters.min);
  const max = filters.max === "" ? Infinity : Number(filters.max);
  const ranged = filters.min !== "" || filters.max !== "";
  return (row) => {
    if (keys && !keys.has(row.k)) return false;
    if (filters.template && row.t !== filters.template) return false;
    if (filters.status && row.s !== filters.status) return false;
    if (tool !== null && !row.tools.includes(tool)) return false;
    if (ranged) {
      const score = scoreOf(row, filters.metric, lists);
      if (score === null || score < min || score > max) return false;
    }
    if (!words.length) return true;
    const text = `${row.k} ${row.q} ${row.t} ${row.r ?? ""}`.toLowerCase();
    return words.every((word) => text.includes(word));
  };
}

const SORT_VALUES = {
  id: (row) => row.k,
  template: (row) => row.t,
  tok: (row) => row.tok ?? null,
  sec: (row) => row.sec ?? null,
  usd: (row) => row.usd ?? null,
};

// Give the rows in the order that "sort" names, such as "sec" or "-sec" (falling); "" is the dataset's order.
function sortedRows(rows, sort, lists) {
  const descending = sort.startsWith("-");
  const column = descending ? sort.slice(1) : sort;
  if (!column) return rows;
  const value = SORT_VALUES[column] ?? ((row) => scoreOf(row, column, lists));
  return [...rows].sort((one, other) => compareValues(value(one), value(other), descending));
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
  return [["", "dataset's order"], ...named.flatMap(([value, name]) => [[value, `${name}, rising`], [`-${value}`, `${name}, falling`]])];
}

// Give the form; its fields are named as the filters.
function filterForm(lists) {
  const plain = (value) => [value, value];
  const bound = (name) => element("input", { type: "number", name, step: "any", inputmode: "decimal" });
  const fields = [
    field("Search text, id, reason", element("input", { type: "search", name: "text", autocomplete: "off", spellcheck: "false", dir: "auto" })),
    field("Template", choice("template", [["", "all"], ...lists.templates.map(plain)])),
    field("Status", choice("status", [["", "all"], ["success", "answered"], ["error", "error"]])),
  ];
  if (lists.metrics.length) {
    fields.push(field("Score", choice("metric", lists.metrics.map((metric) => [metric, metric, displayOf(metric, lists).note]))), field("from", bound("min")), field("to", bound("max")));
  }
  if (lists.tools.length) fields.push(field("Used tool", choice("tool", [["", "any"], ...lists.tools.map(plain)])));
  fields.push(field("Sort by", choice("sort", sortChoices(lists))));
  return element("form", { class: "filters", role: "search", "aria-label": "Questions" }, fields);
}
