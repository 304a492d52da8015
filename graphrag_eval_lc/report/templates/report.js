// Starts the report: the list, the buttons that filter it, the links to questions, the sortable tables.

function reportLists(rows) {
  return { ...storedJson("lists"), sets: storedJson("sets"), hasCost: rows.some((row) => isNumber(row.usd)) };
}

function showQuestions(list, filters) {
  list.change({ ...NO_FILTERS, metric: list.filters.metric, ...filters });
  document.getElementById("questions").scrollIntoView();
  list.form.elements.text.focus({ preventScroll: true });
}

function start() {
  const rows = storedJson("index");
  const lists = reportLists(rows);
  const list = new QuestionList(document.getElementById("list"), rows, lists, { noun: lists.hasRepeats ? "sample" : "question", page: "report" });
  document.documentElement.classList.add("scripted");
  document.querySelectorAll("table[data-sortable]").forEach(makeSortable);
  watchScrollBoxes();
  for (const button of document.querySelectorAll("button.show-set")) {
    const { set, template } = button.dataset;
    button.addEventListener("click", () => showQuestions(list, set ? { set } : { template }));
  }
  const followAddress = () => {
    const { q, ...others } = hashParts();
    const section = hashSection();
    if (q !== undefined) list.openQuestion(q);
    else if (Object.keys(others).length) list.change(filtersFromHash(list.lists), section);
    else if (section) keepFiltersInHash(list.filters, list.lists, section);
    // The browser finds only sections that stand in the address alone.
    if (section && Object.keys(others).length) document.getElementById(section).scrollIntoView();
  };
  addEventListener("hashchange", followAddress);
  // A link that is followed twice leaves the address as it is.
  document.addEventListener("click", (event) => {
    const link = event.target.closest?.("a[href^='#q=']");
    if (link && link.hash === location.hash) followAddress();
  });
  if (Object.keys(hashParts()).length) followAddress();
}

start();
