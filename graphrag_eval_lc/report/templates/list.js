// The list of the report: all questions with their scores and what they spent.

const METRICS_SHOWN = 3;
const STATE_SIGNS = { error: ["✗", "bad"], wrong: ["✗", "bad"], undecided: ["?", ""], partly: ["≈", "warn"], unscored: ["·", ""], right: ["✓", "good"] };

class QuestionList extends FilteredList {
  readFilters() {
    return filtersFromHash(this.lists);
  }

  keepFilters(section) {
    keepInHash({ ...this.filters, q: this.openKey() }, section, firstFilters(this.lists));
  }

  makeForm() {
    return filterForm(this.lists);
  }

  fillForm() {
    fillForm(this.form, this.filters, this.lists);
  }

  // Take up the rows of a newer page. The form stays as it is while somebody is in it, and the focus where it was.
  take(rows, lists) {
    const focused = document.activeElement;
    const key = focused.closest("tr.question")?.dataset.key;
    this.rows = rows;
    this.lists = lists;
    if (!this.form.contains(document.activeElement)) this.form.replaceChildren(...filterForm(lists).children);
    this.filters = this.readFilters();
    this.current = rows.find((row) => row.k === this.current?.k) ?? null;
    this.render();
    const place = focused.isConnected ? focused : [...this.body.rows].find((row) => key !== undefined && row.dataset.key === key)?.querySelector(".question-button");
    if (place && place !== document.activeElement) place.focus({ preventScroll: true });
  }

  // A set has its questions whether or not they are right.
  change(filters, section = "") {
    super.change(filters.set && !filters.status ? { ...filters, status: "all" } : filters, section);
  }

  // The chosen score stays: alone it leaves out nothing.
  noFilters() {
    return { ...NO_FILTERS, metric: this.filters.metric };
  }

  chosenRows() {
    return sortedRows(this.rows.filter(rowFilter(this.filters, this.lists)), this.filters.sort, this.lists);
  }

  // The metrics that have a column: the first ones, and the one that is chosen.
  metrics() {
    const first = this.lists.metrics.slice(0, METRICS_SHOWN);
    return first.includes(this.filters.metric) || !this.filters.metric ? first : [...first, this.filters.metric];
  }

  // The one metric that stays where there is no room for more: the one that is chosen.
  scoreClasses(metric) {
    return metric === this.filters.metric ? "score" : "score side-column";
  }

  columns() {
    const columns = [
      ["id", "Question", "wide"],
      ["template", "Template", "meta-column template-id"],
      ...this.metrics().map((metric) => [metric, breakable(metric), this.scoreClasses(metric)]),
      ["tok", "Tokens", "meta-column"],
      ["sec", "Time", "meta-column"],
      ...(this.lists.hasCost ? [["usd", "Cost", "meta-column"]] : []),
    ];
    return columns.map(([column, ...others]) => [column, ...others, displayOf(column, this.lists).note]);
  }

  // How many questions a search leaves out only because they are right.
  rightOnes() {
    const { status, sort, metric, ...others } = this.filters;
    if (status !== "failed" || !Object.values(others).some(Boolean)) return 0;
    const isFound = rowFilter({ ...this.filters, status: "right" }, this.lists);
    return this.rows.filter(isFound).length;
  }

  chipParts() {
    const { set } = this.filters;
    const right = this.rightOnes();
    if (right) return [...super.chipParts(), this.chip({}, `${countText(right)} more among the right ones: show`, () => this.change({ status: "all" }))];
    if (!set) return super.chipParts();
    const label = [foreign(this.lists.sets[set].label), " ", icon("✕"), unseen(" (remove this filter)")];
    return [this.chip({ class: "chip" }, label, () => this.change({ set: "" })), ...super.chipParts()];
  }

  questionRow(row) {
    const [sign, kind] = STATE_SIGNS[row.s];
    const button = element(
      "button",
      { type: "button", class: "disclosure question-button", "aria-expanded": "false" },
      element("span", { class: "question-text" }, foreign(row.q)),
      element("span", { class: "question-id" }, foreign(row.k)),
      hasFailed(row) ? [" ", badge(`${sign} ${STATES[row.s]}`, kind)] : [],
      notes().byKey.has(row.k) ? [" ", badge("✎ note")] : [],
    );
    const meta = element("div", { class: "meta" }, foreign(row.t), ` · ${countText(row.tok)} tokens · ${secondsText(row.sec)}`, this.lists.hasCost && isNumber(row.usd) ? ` · ${dollarsText(row.usd)}` : "");
    return element(
      "tr",
      { class: `question ${row.s}` },
      element("th", { scope: "row" }, button, meta, this.whyLines(row)),
      element("td", { class: "meta-column template-id" }, breakable(row.t)),
      this.metrics().map((metric) => this.scoreCell(row, metric)),
      element("td", { class: "meta-column number" }, countText(row.tok)),
      element("td", { class: "meta-column number" }, secondsText(row.sec)),
      this.lists.hasCost ? element("td", { class: "meta-column number" }, dollarsText(row.usd)) : [],
    );
  }

  // Why a question failed: its group, what was expected and what came, and the reason.
  whyLines(row) {
    if (!hasFailed(row)) return [];
    const line = (label, text) => (text ? element("div", { class: "reason" }, element("span", { class: "label" }, `${label} `), foreign(text)) : []);
    return element(
      "div",
      { class: "why-lines" },
      element("div", { class: "reason strong" }, foreign(this.lists.groups[row.g])),
      row.e ? [line("expected", row.e), line("answer", row.a ?? "none")] : [],
      line("why", row.r),
    );
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
}
