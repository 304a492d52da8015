// The list of the comparison: the questions of A and of one other run, and what became of each.

// In the order of the numbers that rows have: the name, its sign, whether it is good or bad.
const TURNS = [
  ["broken", "✗", "bad"],
  ["fixed", "✓", "good"],
  ["worse", "↓", "bad"],
  ["better", "↑", "good"],
  ["not comparable", "?", "warn"],
  ["same", "=", "muted"],
];
const CHANGED = "changed"; // any of the first four
const NO_CHOICE = { text: "", template: "", turn: "", sort: "" };

function turnName(row) {
  return TURNS[row.w][0];
}

function isChanged(row) {
  return row.w < 4;
}

// A difference with its sign, or a dash where there is none to tell.
function changeText(row, unit) {
  if (!isNumber(row.a) || !isNumber(row.b)) return NOT_MEASURED;
  const difference = isChanged(row) ? row.b - row.a : 0;
  const text = amountText(Math.abs(difference), unit);
  return /[1-9]/.test(text) ? `${difference < 0 ? "−" : "+"}${text}` : text;
}

// Give the address of a question in the report of a run; null where there is no report, or the question is not in it.
function reportAddress(row, letter, lists) {
  const report = lists.reports[letter];
  const key = Object.hasOwn(row.l ?? {}, letter) ? row.l[letter] : row.k;
  return report && key !== null ? `${report}#q=${encodeURIComponent(key)}` : null;
}

function reportLinks(row, letters, lists) {
  return letters.flatMap((letter) => {
    const address = reportAddress(row, letter, lists);
    return address ? [" · ", element("a", { href: address }, `Report ${letter}`)] : [];
  });
}

function comparedFilter(filters) {
  const words = wordsOf(filters.text);
  return (row) => {
    if (filters.template && row.t !== filters.template) return false;
    if (filters.turn && !(filters.turn === CHANGED ? isChanged(row) : turnName(row) === filters.turn)) return false;
    const text = words.length ? `${row.k} ${row.q} ${row.t} ${row.y ?? ""}`.toLowerCase() : "";
    return words.every((word) => text.includes(word));
  };
}

const COMPARED_VALUES = {
  id: (row) => row.k,
  template: (row) => row.t,
  a: (row) => row.a ?? null,
  b: (row) => row.b ?? null,
  difference: (row) => (isNumber(row.a) && isNumber(row.b) ? row.b - row.a : null),
  turn: (row) => row.w,
};

function comparedSorts(other) {
  const named = [["id", "id"], ["template", "template"], ["a", "A"], ["b", other], ["difference", "difference"]];
  return [["", "change"], ...named.flatMap(([value, name]) => [[value, `${name}, rising`], [`-${value}`, `${name}, falling`]])];
}

class ComparedList extends FilteredList {
  listed() {
    return this.rows.get(this.filters.run);
  }

  // What this comparison does not have cannot be chosen, and so is left out.
  readFilters() {
    const { runs, templates } = this.lists;
    const parts = hashParts();
    const known = {
      run: runs.map(({ letter }) => letter),
      template: templates,
      turn: [CHANGED, ...TURNS.map(([name]) => name)],
      sort: ["turn", "-turn", ...comparedSorts("B").map(([value]) => value)],
    };
    const filters = { run: runs[0].letter, ...NO_CHOICE };
    for (const name of Object.keys(filters)) {
      if (Object.hasOwn(parts, name) && (known[name] ?? [parts[name]]).includes(parts[name])) filters[name] = parts[name];
    }
    return filters;
  }

  keepFilters(section) {
    keepInHash({ ...this.filters, q: this.openKey() }, section, { run: this.lists.runs[0].letter });
  }

  makeForm() {
    const { runs, templates } = this.lists;
    const plain = (value) => [value, value];
    const turns = [["", "all"], [CHANGED, "all that changed"], ...TURNS.map(([name]) => plain(name))];
    return element("form", { class: "filters", role: "search", "aria-label": "Questions" }, [
      field("Search text, id", element("input", { type: "search", name: "text", autocomplete: "off", spellcheck: "false", dir: "auto" })),
      runs.length > 1 ? field("Run beside A", choice("run", runs.map(({ letter, label }) => [letter, `${letter}: ${label}`]))) : [],
      field("Change", choice("turn", turns)),
      field("Template", choice("template", [["", "all"], ...templates.map(plain)])),
      field("Sort by", choice("sort", comparedSorts("B"))),
    ]);
  }

  fillForm() {
    fillFields(this.form, this.filters);
    comparedSorts(this.filters.run).forEach(([, text], index) => {
      this.form.elements.sort.options[index].textContent = text;
    });
  }

  noFilters() {
    return { ...NO_CHOICE, run: this.filters.run };
  }

  change(filters, section = "") {
    if (filters.run !== undefined && filters.run !== this.filters.run) this.openRows.clear();
    super.change(filters, section);
  }

  // Show all of a run, if there is such a one and another is shown; the address stays as it is.
  chooseRun(run) {
    if (run === this.filters.run || !this.rows.has(run)) return;
    this.openRows.clear();
    this.filters = { ...NO_CHOICE, run };
    this.render();
  }

  chosenRows() {
    const { sort } = this.filters;
    const rows = this.listed().filter(comparedFilter(this.filters));
    const descending = sort.startsWith("-");
    const value = COMPARED_VALUES[descending ? sort.slice(1) : sort];
    return value ? rows.sort((one, other) => compareValues(value(one), value(other), descending)) : rows;
  }

  columns() {
    return [
      ["id", "Question", "wide"],
      ["template", "Template", "meta-column template-id"],
      ["a", "A", "meta-column"],
      ["b", this.filters.run, "meta-column"],
      ["difference", "Difference", "meta-column"],
      ["turn", "Change", "turn"],
    ];
  }

  questionRow(row) {
    const { run } = this.filters;
    const { unit } = this.lists;
    const text = foreign(row.q || row.k);
    const head = isNumber(row.c)
      ? element("button", { type: "button", class: "disclosure question-button", "aria-expanded": "false" }, text)
      : element("div", { class: "question-line" }, text);
    const values = [row.a, row.b].map((value) => amountText(value, unit));
    const change = changeText(row, unit);
    const [name, sign, kind] = TURNS[row.w];
    const below = element(
      "div",
      { class: "question-line question-id" },
      foreign(row.k),
      element("span", { class: "meta-part" }, " · ", foreign(row.t), ` · ${values.join(" → ")} (${change})`),
      reportLinks(row, ["A", run], this.lists),
    );
    return element(
      "tr",
      { class: "question" },
      element("th", { scope: "row" }, head, below, row.y ? element("div", { class: "why-lines" }, element("div", { class: "reason" }, element("span", { class: "label" }, "why "), foreign(row.y))) : []),
      element("td", { class: "meta-column template-id" }, breakable(row.t)),
      values.map((value) => element("td", { class: "meta-column number" }, value)),
      element("td", { class: "meta-column number strong" }, change),
      element(
        "td",
        { class: `turn ${kind}` },
        icon(sign),
        ` ${name}`,
        row.n ? element("small", {}, row.n) : [],
        row.u ? [" ", badge("? undecided", "undecided")] : [],
      ),
    );
  }
}
