// Starts the comparison: its tables, the list of questions, the buttons that filter it, the links to questions.

// Give for each run beside A the rows of its questions, which share what is the same in all runs.
function comparedRows({ questions, pairs }) {
  const expanded = (row) => ({ ...questions[row.i], ...row });
  return new Map(Object.entries(pairs).map(([letter, rows]) => [letter, rows.map(expanded)]));
}

function startList(place) {
  const list = new ComparedList(place, comparedRows(storedJson("index")), storedJson("lists"), { noun: "question", page: "comparison" });
  for (const button of document.querySelectorAll("button.show-set")) {
    const { run, template, turn } = button.dataset;
    button.addEventListener("click", () => {
      list.change({ ...NO_CHOICE, run, template: template ?? "", turn: turn ?? "" });
      document.getElementById("questions").scrollIntoView();
      list.form.elements.text.focus({ preventScroll: true });
    });
  }
  const followAddress = () => {
    const { q, ...others } = hashParts();
    const section = hashSection();
    if (q !== undefined) {
      list.chooseRun(others.run);
      list.openQuestion(q);
    } else if (Object.keys(others).length) list.change(list.readFilters(), section);
    else if (section) list.keepFilters(section);
    // The browser finds only sections that stand in the address alone.
    if (section && Object.keys(others).length) document.getElementById(section).scrollIntoView();
  };
  addEventListener("hashchange", followAddress);
  // A link that is followed twice leaves the address as it is.
  document.addEventListener("click", (event) => {
    const link = event.target.closest?.("a[href^='#']");
    if (link && hashParts().q !== undefined && link.hash === location.hash) followAddress();
  });
  if (Object.keys(hashParts()).length) followAddress();
}

function start() {
  const place = document.getElementById("list");
  if (place) startList(place);
  document.documentElement.classList.add("scripted");
  document.querySelectorAll("table[data-sortable]").forEach(makeSortable);
  watchScrollBoxes();
}

start();
