// What a reader notes of questions: that a reference or a judge is wrong, and why. Notes stay in the browser until they
// are exported as one JSON, which "graphrag-eval-lc dataset notes" reads.

class Notes {
  constructor(run) {
    this.run = run;
    this.key = `graphrag-eval-lc-notes:${run.run_id ?? run.title}`;
    this.byKey = new Map(Object.entries(this.stored()));
    this.listeners = [];
  }

  // Storage may be forbidden for files, or hold what another page wrote; then notes last as long as the page.
  stored() {
    try {
      const stored = JSON.parse(localStorage.getItem(this.key) ?? "{}");
      return stored && typeof stored === "object" ? stored : {};
    } catch {
      return {};
    }
  }

  of(key) {
    return this.byKey.get(key) ?? {};
  }

  // Change a note, and say whether the browser keeps it; one that says nothing goes.
  change(key, question, changes) {
    const note = { ...this.of(key), ...changes };
    for (const [name, value] of Object.entries(note)) if (!value || value.length === 0) delete note[name];
    if (["reference", "judge", "note", "accepted"].some((name) => name in note)) this.byKey.set(key, { question_id: question, ...note });
    else this.byKey.delete(key);
    let isKept = true;
    try {
      localStorage.setItem(this.key, JSON.stringify(Object.fromEntries(this.byKey)));
    } catch {
      isKept = false;
    }
    this.listeners.forEach((listener) => listener());
    return isKept ? "Saved in this browser." : "This browser keeps no notes: export them before you close the page.";
  }

  // The file that the command reads.
  asJson() {
    const notes = [...this.byKey].map(([key, note]) => ({ key, ...note }));
    return JSON.stringify({ format_version: 1, kind: "notes", ...this.run, notes }, null, 2);
  }
}

let allNotes = null;

// The notes of this page.
function notes() {
  allNotes ??= new Notes(storedJson("lists").run);
  return allNotes;
}

function checkbox(label, isChecked, onChange) {
  const box = element("input", { type: "checkbox", checked: isChecked });
  box.addEventListener("change", () => onChange(box.checked));
  return element("label", { class: "check" }, box, " ", label);
}

// The fields of a question: what is wrong, and a text.
function noteSection(detail) {
  const said = element("span", { role: "status" });
  const save = element("span", { class: "notes-line" }, exportParts());
  const update = () => {
    save.hidden = notes().byKey.size === 0;
  };
  notes().listeners.push(update);
  update();
  const change = (changes) => {
    said.textContent = notes().change(detail.key, detail.id, changes);
  };
  const note = notes().of(detail.key);
  const text = element("textarea", { rows: "2", "aria-label": "Note", placeholder: "Note", dir: "auto" });
  text.value = note.note ?? "";
  text.addEventListener("input", () => change({ note: text.value }));
  const judged = (detail.measures ?? []).some(({ name }) => name === "answer_f1");
  const judge = element("select", { "aria-label": "The judge is" }, [["", "–"], ["right", "right"], ["wrong", "wrong"]].map(([value, name]) => element("option", { value }, name)));
  judge.value = note.judge ?? "";
  judge.addEventListener("change", () => change({ judge: judge.value }));
  return section(
    "Your note",
    [element("small", {}, "kept in this browser until you export it")],
    element(
      "div",
      { class: "note-fields" },
      checkbox("The reference is wrong", note.reference === "wrong", (isWrong) => change({ reference: isWrong ? "wrong" : "" })),
      judged ? element("label", { class: "check" }, "The judge is ", judge) : [],
    ),
    text,
    element("p", { class: "notes-line" }, said, save),
  );
}

// The box by which a reader accepts the output of an actual step as the reference.
function acceptBox(detail, group, place, actual) {
  const isStep = (each) => each.group === group && each.step === place;
  const others = () => (notes().of(detail.key).accepted ?? []).filter((each) => !isStep(each));
  const isAccepted = (notes().of(detail.key).accepted ?? []).some((each) => isStep(each) && each.actual === actual);
  const said = element("span", { role: "status", class: "muted small" });
  const box = checkbox("Accept this output as the reference", isAccepted, (accepts) => {
    const accepted = accepts ? [...others(), { group, step: place, actual }] : others();
    said.textContent = ` ${notes().change(detail.key, detail.id, { accepted })}`;
  });
  return [box, said];
}

// The button that exports all notes, and the command that reads them.
function exportParts() {
  const save = element("button", { type: "button" }, "Export notes");
  save.addEventListener("click", () => {
    const address = URL.createObjectURL(new Blob([notes().asJson()], { type: "application/json" }));
    element("a", { href: address, download: "notes.json" }).click();
    setTimeout(() => URL.revokeObjectURL(address), 1000);
  });
  const command = `graphrag-eval-lc dataset notes notes.json ${storedJson("lists").dataset}`;
  return [save, element("span", { class: "muted small" }, "then: ", foreign(command))];
}

// The line above the list: how many notes there are, and the buttons that show and export them.
function notesLine(onShow) {
  const line = element("p", { class: "notes-line", hidden: true });
  const update = () => {
    const count = notes().byKey.size;
    line.hidden = count === 0;
    const show = element("button", { type: "button" }, `Show ${counted(count, "note")}`);
    show.addEventListener("click", () => onShow([...notes().byKey.keys()]));
    line.replaceChildren(show, ...exportParts());
  };
  notes().listeners.push(update);
  update();
  return line;
}
