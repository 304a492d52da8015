// Boxes whose content is wider than they are can be reached and scrolled by the keyboard; others are no stop for it.

function updateScrollBox(box) {
  if (box.scrollWidth > box.clientWidth + 1) {
    box.setAttribute("tabindex", "0");
    box.setAttribute("role", "region");
    box.setAttribute("aria-label", `${box.querySelector("caption")?.firstChild.textContent.trim() ?? "Table"} (scrolls)`);
  } else {
    for (const name of ["tabindex", "role", "aria-label"]) box.removeAttribute(name);
  }
}

const scrollBoxes = new ResizeObserver((entries) => entries.forEach((entry) => updateScrollBox(entry.target)));

// Watch the boxes that the page came with.
function watchScrollBoxes() {
  document.querySelectorAll(".scroll").forEach((box) => scrollBoxes.observe(box));
}

// A table that a script makes, in a box of its own.
function scrollBox(table) {
  const box = element("div", { class: "scroll" }, table);
  scrollBoxes.observe(box);
  return box;
}
