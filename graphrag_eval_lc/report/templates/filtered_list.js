// A list of questions with its filters: a table that shows the first rows of what is asked for, and more when told to.

const ROWS_AT_ONCE = 200;
const QUESTION_WIDTH = 16; // in rem; columns are left out before the questions get less

function field(label, control) {
  control.id = `filter-${control.name}`;
  return element("div", { class: `field field-${control.name}` }, element("label", { for: control.id }, label), control);
}

function choice(name, options) {
  const made = element("select", { name });
  for (const [value, text, title] of options) made.append(element("option", { value, title }, text));
  return made;
}

// Let the fields of a form say what the filters are.
function fillFields(form, filters) {
  for (const control of form.elements) {
    if (Object.hasOwn(filters, control.name) && control.value !== filters[control.name]) control.value = filters[control.name];
  }
}

// The words of a search.
function wordsOf(text) {
  return text.toLowerCase().split(/\s+/).filter(Boolean);
}

// Say on a question's button that its details are open, and where.
function markOpen(tableRow, details) {
  const button = tableRow.querySelector(".question-button");
  button.setAttribute("aria-expanded", "true");
  button.setAttribute("aria-controls", details.querySelector(".detail").id);
}

// What is listed says the class that extends it:
// - readFilters(), keepFilters(section), makeForm() and fillForm();
// - noFilters(): the filters of the whole list, in the order that it has now;
// - chosenRows(): the rows that the filters leave, in their order;
// - columns(): of each its name, heading, classes and title;
// - questionRow(row): the row of the table, whose button, if any, is a `.question-button`.
class FilteredList {
  constructor(place, rows, lists, { noun, page }) {
    this.rows = rows;
    this.lists = lists;
    this.noun = noun;
    this.page = page;
    this.filters = this.readFilters();
    this.shownRows = [];
    this.openRows = new Map(); // key -> the row with its details
    this.current = null; // the row that was opened last
    this.form = this.makeForm();
    this.chips = element("p", { class: "chips" });
    this.count = element("p", { role: "status", class: "count-line", tabindex: "-1" });
    this.table = element("table", { class: "list" }, element("caption", { class: "unseen" }, "Questions"));
    this.more = element("button", { type: "button", class: "more" });
    place.append(this.form, this.chips, this.count, this.table, this.more);
    addEventListener("beforeprint", () => this.spanDetails(this.table.tHead.querySelectorAll("th:not(.meta-column)").length));
    addEventListener("afterprint", () => this.spanDetails());
    this.form.addEventListener("submit", (event) => {
      event.preventDefault();
      this.body.querySelector(".question-button")?.focus();
    });
    this.form.addEventListener("input", (event) => this.change({ [event.target.name]: event.target.value }));
    this.more.addEventListener("click", () => this.showMore());
    this.render();
    new ResizeObserver(() => this.fitColumns()).observe(place);
  }

  // All questions, whatever the filters.
  listed() {
    return this.rows;
  }

  // Change some filters, and show what they leave.
  change(filters, section = "") {
    this.filters = { ...this.filters, ...filters };
    this.render();
    this.keepFilters(section);
  }

  // The key of the question that was opened last, as long as it is open and in the list; the address names it.
  openKey() {
    const isOpen = this.shownRows.includes(this.current) && (this.openRows.has(this.current.k) || !isNumber(this.current.c));
    return isOpen ? this.current.k : "";
  }

  clear() {
    this.change({ ...this.noFilters(), sort: this.filters.sort });
  }

  isFiltered() {
    const all = this.noFilters();
    return Object.entries(this.filters).some(([name, value]) => name !== "sort" && value !== all[name]);
  }

  render() {
    this.fillForm();
    this.shownRows = this.chosenRows();
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

  // The headings, each of which sorts by its column: texts rising first, numbers falling.
  head() {
    const descending = this.filters.sort.startsWith("-");
    const sorted = descending ? this.filters.sort.slice(1) : this.filters.sort;
    const cells = this.columns().map(([column, text, classes, title]) => {
      const cell = element("th", { scope: "col", class: classes, title }, text);
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

  // A button that changes the filters, and then lets the reader search on.
  chip(attributes, label, change) {
    const button = element("button", { type: "button", ...attributes }, label);
    button.addEventListener("click", () => {
      change();
      this.form.elements.text.focus();
    });
    return button;
  }

  chipParts() {
    return this.isFiltered() ? [this.chip({}, "Clear all filters", () => this.clear())] : [];
  }

  renderChips() {
    const parts = this.chipParts();
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
    const all = this.listed().length === this.shownRows.length ? "" : ` of ${countText(this.listed().length)}`;
    this.count.textContent = `${countText(this.shownRows.length)}${all} ${this.noun}${this.listed().length === 1 ? "" : "s"}${left ? `; the first ${countText(shown)} are shown` : ""}`;
  }

  shownCount() {
    return this.body.querySelectorAll(":scope > .question").length;
  }

  // Give the row of a question, and the row with its details where those are open.
  rowParts(row) {
    const made = this.questionRow(row);
    made.dataset.key = row.k;
    made.querySelector(".question-button")?.addEventListener("click", () => this.toggle(made, row));
    const details = this.openRows.get(row.k);
    if (!details) return [made];
    markOpen(made, details);
    return [made, details];
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
      this.keepFilters();
      return;
    }
    this.current = row;
    disclosedCount += 1;
    const place = element("div", { class: "detail", id: `disclosed-${disclosedCount}` }, element("p", { class: "muted" }, "Unpacking …"));
    const details = element("tr", { class: "detail-row" }, element("td", { colspan: this.shownColumnCount() }, place));
    this.openRows.set(row.k, details);
    tableRow.after(details);
    markOpen(tableRow, details);
    this.keepFilters();
    await fillDetail(place, row);
  }

  // Show a question, whatever the filters, opened, and with the focus on it.
  openQuestion(key) {
    const known = this.listed().find((row) => row.k === key);
    if (!known) {
      this.count.textContent = `There is no question ${key} in this ${this.page}.`;
      this.count.scrollIntoView();
      return;
    }
    if (!this.shownRows.includes(known)) {
      this.filters = this.noFilters();
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

  // Close the question that was opened last, and open the one before or after it in the list.
  openNext(direction) {
    const place = this.shownRows.indexOf(this.current) + direction;
    const row = this.shownRows[this.current === null ? 0 : place];
    if (!row) return;
    const known = () => this.body.querySelectorAll(":scope > .question");
    if (this.openRows.has(this.current?.k)) this.toggle(known()[place - direction], this.current);
    if (place >= this.shownCount()) this.showMore();
    this.openShown(row, known()[this.shownRows.indexOf(row)]);
  }

  // Open a row that is shown, and bring it into view; one without details has its links.
  openShown(row, tableRow) {
    this.current = row;
    const button = tableRow.querySelector(".question-button");
    if (button && !this.openRows.has(row.k)) this.toggle(tableRow, row);
    tableRow.scrollIntoView({ block: "start", behavior: "instant" });
    (button ?? tableRow.querySelector("a"))?.focus({ preventScroll: true });
    this.keepFilters();
  }
}
