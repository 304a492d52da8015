// Tables that are in the page already become sortable: each heading that says how gets a button.

function cellValue(row, column, kind) {
  const text = row.cells[column].dataset.value ?? "";
  if (kind === "text") return text;
  return text === "" ? null : Number(text);
}

// What was not measured comes last, whichever way the table is sorted.
function compareValues(one, other, descending) {
  if (one === null || other === null) return (one === null) - (other === null);
  const order = typeof one === "string" ? one.localeCompare(other, "en", { numeric: true }) : one - other;
  return descending ? -order : order;
}

function sortButton(heading, onSort) {
  const button = element("button", { type: "button", class: "sort" }, ...heading.childNodes);
  button.addEventListener("click", onSort);
  heading.append(button);
}

// Mark the heading that the rows are sorted by, and no other.
function markSorted(headings, sorted, descending) {
  for (const heading of headings) {
    if (heading === sorted) heading.setAttribute("aria-sort", descending ? "descending" : "ascending");
    else heading.removeAttribute("aria-sort");
  }
}

function makeSortable(table) {
  const headings = [...table.querySelectorAll("th[data-sort]")];
  for (const heading of headings) {
    const column = heading.cellIndex;
    const kind = heading.dataset.sort;
    sortButton(heading, () => {
      const now = heading.getAttribute("aria-sort");
      const descending = now ? now === "ascending" : kind === "number";
      const body = table.tBodies[0];
      const rows = [...body.rows].sort((one, other) =>
        compareValues(cellValue(one, column, kind), cellValue(other, column, kind), descending),
      );
      body.append(...rows);
      markSorted(headings, heading, descending);
    });
  }
}
