// The list of questions: a table that shows the first rows of what is asked for, and more when told to.

const ROWS_AT_ONCE = 200;
const METRICS_SHOWN = 3;
const QUESTION_WIDTH = 16; // in rem; columns are left out before the questions get less

// Say on a question's button that its details are open, and where.
function markOpen(tableRow, details) {
  const button = tableRow.querySelector(".question-button");
  button.setAttribute("aria-expanded", "true");
  button.setAttribute("aria-controls", details.querySelector(".detail").id);
}

class QuestionList {
  constructor(place, rows, lists) {
    this.rows = rows;
    this.lists = lists;
    this.filters = filtersFromHash(lists);
    this.shownRows = [];
    this.openRows = new Map(); // key -> the row with its details
    this.form = filterForm(lists);
    this.chips = element("p", { class: "chips" });
    this.count = element("p", { role: "status", class: "count-line" });
    this.table = element("table", { class: "list" }, element("caption", { class: "unseen" }, "Questions"));
    this.more = element("button", { type: "button", class: "more" });
    place.append(this.form, this.chips, this.count, this.table, this.more);
    addEventListener("beforeprint", () => this.spanDetails(this.table.tHead.querySelectorAll("th:not(.meta-column)").length));
    addEventListener("afterprint", () => this.spanDetails());
    this.form.addEventListener("submit", (event) => event.preventDefault());
    this.form.addEventListener("input", (event) => this.change({ [event.target.name]: event.target.value }));
    this.more.addEventListener("click", () => this.showMore());
    this.render();
    new ResizeObserver(() => this.fitColumns()).observe(place);
  }

  // Change some filters, and show what they leave.
  change(filters, section = "") {
    this.filters = { ...this.filters, ...filters };
    keepFiltersInHash(this.filters, this.lists, section);
    this.render();
  }

  clear() {
    this.change({ ...NO_FILTERS, metric: this.filters.metric, sort: this.filters.sort });
  }

  // The metrics that have a column: the first ones, and the one that is chosen.
  metrics() {
    const first = this.lists.metrics.slice(0, METRICS_SHOWN);
    return first.includes(this.filters.metric) || !this.filters.metric ? first : [...first, this.filters.metric];
  }

  render() {
    fillForm(this.form, this.filters, this.lists);
    this.shownRows = sortedRows(this.rows.filter(rowFilter(this.filters, this.lists)), this.filters.sort, this.lists);
    this.body = element("tbody");
    this.table.replaceChildren(this.table.caption, this.head(), this.body);
    this.renderChips();
    this.showMore();
    this.fitColumns();
  }

  // Leave out columns until the questions have room: first those that the line below a question has too, then scores.
  fitColumns() {
    const rem = parseFloat(getComputedStyle(document.documentElement).fontSize);
    const question = this.table.tHead.rows[0].cells[0];
    this.table.classList.remove("without-meta", "without-sides");
    for (const kind of ["without-meta", "without-sides"]) {
      if (question.getBoundingClientRect().width < QUESTION_WIDTH * rem) this.table.classList.add(kind);
    }
    this.spanDetails();
  }

  // The one metric that stays where there is no room for more: the one that is chosen.
  scoreClasses(metric) {
    return metric === this.filters.metric ? "score" : "score side-column";
  }

  head() {
    const { hasCost } = this.lists;
    const columns = [
      ["id", "Question", "wide"],
      ["template", "Template", "meta-column template-id"],
      ...this.metrics().map((metric) => [metric, breakable(metric), this.scoreClasses(metric)]),
      ["tok", "Tokens", "meta-column"],
      ["sec", "Time", "meta-column"],
      ...(hasCost ? [["usd", "Cost", "meta-column"]] : []),
    ];
    const descending = this.filters.sort.startsWith("-");
    const sorted = descending ? this.filters.sort.slice(1) : this.filters.sort;
    const cells = columns.map(([column, text, classes]) => {
      const cell = element("th", { scope: "col", class: classes, title: displayOf(column, this.lists).note }, text);
      const textual = column === "id" || column === "template";
      sortButton(cell, () => {
        const next = column === sorted ? !descending : !textual;
        this.change({ sort: next ? `-${column}` : column });
        this.table.querySelectorAll("th .sort")[cell.cellIndex].focus();
      });
      if (column === sorted) cell.setAttribute("aria-sort", descending ? "descending" : "ascending");
      return cell;
    });
    return element("thead", {}, element("tr", {}, cells));
  }

  renderChips() {
    const { set } = this.filters;
    const filtered = Object.entries(this.filters).some(([name, value]) => value !== "" && name !== "metric" && name !== "sort");
    const parts = [];
    if (set) {
      const remove = element("button", { type: "button", class: "chip" }, foreign(this.lists.sets[set].label), " ", icon("✕"), unseen(" (remove this filter)"));
      remove.addEventListener("click", () => {
        this.change({ set: "" });
        this.form.elements.text.focus();
      });
      parts.push(remove);
    }
    if (filtered) {
      const clear = element("button", { type: "button" }, "Clear all filters");
      clear.addEventListener("click", () => {
        this.clear();
        this.form.elements.text.focus();
      });
      parts.push(clear);
    }
    this.chips.replaceChildren(...parts);
    this.chips.hidden = !parts.length;
  }

  // Add the next rows to the table.
  showMore(until = this.shownCount() + ROWS_AT_ONCE) {
    const from = this.shownCount();
    const fragment = document.createDocumentFragment();
    for (const row of this.shownRows.slice(from, until)) fragment.append(...this.rowParts(row));
    this.body.append(fragment);
    const shown = Math.min(until, this.shownRows.length);
    const left = this.shownRows.length - shown;
    this.more.hidden = left === 0;
    this.more.textContent = `Show ${countText(Math.min(left, ROWS_AT_ONCE))} more`;
    const all = this.rows.length === this.shownRows.length ? "" : ` of ${countText(this.rows.length)}`;
    const noun = this.lists.hasRepeats ? "sample" : "question";
    this.count.textContent = `${countText(this.shownRows.length)}${all} ${noun}${this.rows.length === 1 ? "" : "s"}${left ? `; the first ${countText(shown)} are shown` : ""}`;
  }

  shownCount() {
    return this.body.querySelectorAll(":scope > .question").length;
  }

  // Give the row of a question, and the row with its details where those are open.
  rowParts(row) {
    const made = this.questionRow(row);
    const details = this.openRows.get(row.k);
    if (!details) return [made];
    markOpen(made, details);
    return [made, details];
  }

  questionRow(row) {
    const button = element(
      "button",
      { type: "button", class: "disclosure question-button", "aria-expanded": "false" },
      element("span", { class: "question-text" }, foreign(row.q)),
      element("span", { class: "question-id" }, foreign(row.k)),
      row.s === "error" ? [" ", badge("✗ error", "bad")] : [],
    );
    const meta = element("div", { class: "meta" }, foreign(row.t), ` · ${countText(row.tok)} tokens · ${secondsText(row.sec)}`, isNumber(row.usd) ? ` · ${dollarsText(row.usd)}` : "");
    const reason = row.r ? element("div", { class: "reason" }, foreign(row.r)) : [];
    const made = element(
      "tr",
      { class: `question ${row.s}` },
      element("th", { scope: "row" }, button, meta, reason),
      element("td", { class: "meta-column template-id" }, breakable(row.t)),
      this.metrics().map((metric) => this.scoreCell(row, metric)),
      element("td", { class: "meta-column number" }, countText(row.tok)),
      element("td", { class: "meta-column number" }, secondsText(row.sec)),
      this.lists.hasCost ? element("td", { class: "meta-column number" }, dollarsText(row.usd)) : [],
    );
    made.dataset.key = row.k;
    button.addEventListener("click", () => this.toggle(made, row));
    return made;
  }

  // A sign and a colour where it is known which scores are good.
  scoreCell(row, metric) {
    const classes = `${this.scoreClasses(metric)} number`;
    const score = scoreOf(row, metric, this.lists);
    const [worst, best] = endsOf(metric, this.lists);
    const { unit, lower } = displayOf(metric, this.lists);
    const isWhole = Number.isInteger(score) && !(worst === 0 && best === 1);
    const text = unit ? amountText(score, unit) : isWhole ? countText(score) : scoreText(score);
    const reaches = (end, isLow) => end !== null && (isLow ? score <= end : score >= end);
    if (score === null || (worst === null && best === null)) return element("td", { class: classes }, text);
    const between = worst === null || best === null ? ["", ""] : ["≈", "warn"];
    const [sign, kind] = reaches(best, lower) ? ["✓", "good"] : reaches(worst, !lower) ? ["✗", "bad"] : between;
    return element("td", { class: `${classes} ${kind}` }, sign ? [icon(sign), " "] : [], text);
  }

  // Let the details that are open span the columns that are shown, and no more.
  spanDetails(count = this.shownColumnCount()) {
    for (const cell of this.body.querySelectorAll(":scope > .detail-row > td")) cell.colSpan = count;
  }

  shownColumnCount() {
    return [...this.table.tHead.rows[0].cells].filter((cell) => cell.getClientRects().length).length;
  }

  // Open or close a row.
  async toggle(tableRow, row) {
    const button = tableRow.querySelector(".question-button");
    if (this.openRows.delete(row.k)) {
      button.setAttribute("aria-expanded", "false");
      button.removeAttribute("aria-controls");
      tableRow.nextElementSibling.remove();
      return;
    }
    disclosedCount += 1;
    const place = element("div", { class: "detail", id: `disclosed-${disclosedCount}` }, element("p", { class: "muted" }, "Unpacking …"));
    const details = element("tr", { class: "detail-row" }, element("td", { colspan: this.shownColumnCount() }, place));
    this.openRows.set(row.k, details);
    tableRow.after(details);
    markOpen(tableRow, details);
    await fillDetail(place, row);
  }

  // Show a question, whatever the filters, opened, and with the focus on it.
  openQuestion(key) {
    const known = this.rows.find((row) => row.k === key);
    if (!known) {
      this.count.textContent = `There is no question ${key} in this report.`;
      this.count.scrollIntoView();
      return;
    }
    if (!this.shownRows.includes(known)) {
      this.filters = { ...NO_FILTERS, metric: this.filters.metric };
      this.render();
    }
    const place = this.shownRows.indexOf(known);
    if (place < this.shownCount()) {
      this.openShown(known, this.body.querySelectorAll(":scope > .question")[place]);
      return;
    }
    // All rows before it would take seconds to make, so it stands first.
    const [tableRow, ...details] = this.rowParts(known);
    this.shownRows = [known, ...this.shownRows.filter((row) => row !== known)];
    this.body.prepend(tableRow, ...details);
    this.showMore(this.shownCount());
    this.openShown(known, tableRow);
  }

  // Open a row that is shown, and bring it into view.
  openShown(row, tableRow) {
    if (!this.openRows.has(row.k)) this.toggle(tableRow, row);
    tableRow.scrollIntoView({ block: "start", behavior: "instant" });
    tableRow.querySelector(".question-button").focus({ preventScroll: true });
  }
}
