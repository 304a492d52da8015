// Starts the report: the list, the buttons that filter it, the links to questions, the sortable tables.

function reportLists(rows) {
  const states = new Set(rows.map((row) => row.s));
  const noted = { label: "With a note", keys: [...notes().byKey.keys()] };
  return { ...storedJson("lists"), sets: { ...storedJson("sets"), noted }, states, hasCost: rows.some((row) => row.usd > 0) };
}

// The keys that go from question to question, unless what has the focus needs them itself.
const DIRECTIONS = { j: 1, ArrowRight: 1, k: -1, ArrowLeft: -1 };

function followKeys(list) {
  document.addEventListener("keydown", (event) => {
    const direction = DIRECTIONS[event.key];
    const isTaken = event.ctrlKey || event.metaKey || event.altKey || event.target.closest?.("input, select, textarea, pre, .scroll");
    if (!direction || isTaken) return;
    event.preventDefault();
    list.openNext(direction);
  });
}

// The browser's way back leads to where the button was.
function showQuestions(list, filters) {
  try {
    history.pushState(null, "", location.href);
  } catch {
    // there is then no way back
  }
  list.change({ ...list.noFilters(), ...filters });
  const isNarrow = matchMedia("(max-width: 44rem)").matches; // the form of the filters would take the screen
  (isNarrow ? list.count : document.getElementById("questions")).scrollIntoView();
  list.count.focus({ preventScroll: true });
}

// Bring to life what the page came with, apart from the list.
function bindPage(list) {
  document.querySelectorAll("table[data-sortable]").forEach(makeSortable);
  watchScrollBoxes();
  for (const button of document.querySelectorAll("main > :not(#questions) button.show-set, main > button.show-set")) {
    button.addEventListener("click", () => showQuestions(list, { ...button.dataset }));
  }
}

function start() {
  const rows = storedJson("index");
  const lists = reportLists(rows);
  const list = new QuestionList(document.getElementById("list"), rows, lists, { noun: lists.hasRepeats ? "sample" : "question", page: "report" });
  document.getElementById("list").before(
    notesLine((keys) => {
      list.lists.sets.noted.keys = keys;
      showQuestions(list, { set: "noted" });
    }),
  );
  document.documentElement.classList.add("scripted");
  bindPage(list);
  followKeys(list);
  const followAddress = () => {
    const { q, ...others } = hashParts();
    const section = hashSection();
    if (q !== undefined) list.openQuestion(q);
    else if (Object.keys(others).length) list.change(filtersFromHash(list.lists), section);
    else if (section) list.keepFilters(section);
    else list.change(firstFilters(list.lists)); // the way back to the page as it was opened
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
  if (lists.isLive) followRun(list);
}

start();
