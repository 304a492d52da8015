// The report of a run that goes on: each time the server says that more is scored, the page takes it up. What is open,
// chosen or written stays as it is.

const DATA = 'script[type="text/plain"], script[type="application/json"]';

// Take up the parts and the data of a newer page; the list stays in its place.
function takePage(made) {
  document.querySelectorAll(DATA).forEach((part) => part.remove());
  document.body.append(...made.querySelectorAll(DATA));
  chunks.clear();
  prefixesOfDataset = null;
  const kept = document.getElementById("questions");
  const top = kept.getBoundingClientRect().top;
  const parts = [...made.querySelector("main").children];
  const place = parts.findIndex((part) => part.id === "questions");
  [...kept.parentElement.children].filter((part) => part !== kept).forEach((part) => part.remove());
  kept.querySelector("h2").textContent = parts[place].querySelector("h2").textContent;
  kept.before(...parts.slice(0, place));
  kept.after(...parts.slice(place + 1));
  document.querySelector(".top nav").replaceChildren(...made.querySelector(".top nav").children);
  // Whoever reads the list stays where they are; whoever looks at the first screen does, too.
  if (top < innerHeight / 2) scrollBy({ top: kept.getBoundingClientRect().top - top, behavior: "instant" });
}

async function takeNews(list) {
  const answer = await fetch(location.pathname, { cache: "no-store" });
  if (!answer.ok) throw new Error(answer.statusText);
  takePage(new DOMParser().parseFromString(await answer.text(), "text/html"));
  const rows = storedJson("index");
  list.take(rows, reportLists(rows));
  bindPage(list);
}

function followRun(list) {
  const said = element("p", { role: "status", class: "live" }, "The run goes on.");
  document.querySelector(".top-line").insertBefore(said, document.getElementById("theme"));
  const source = new EventSource("events");
  let waiting = Promise.resolve();
  const follow = (kind, sentence) =>
    source.addEventListener(kind, (event) => {
      const { scored, total } = JSON.parse(event.data);
      if (kind === "end") source.close();
      waiting = waiting.then(async () => {
        try {
          if (scored) await takeNews(list);
          said.textContent = sentence(countText(scored), countText(Math.max(scored, total)));
        } catch {
          said.textContent = "The run cannot be reached any more.";
        }
      });
    });
  follow("more", (scored, total) => `${scored} of ${total} scored`);
  follow("end", (scored, total) => `The run has ended: ${scored} of ${total} scored`);
  source.addEventListener("error", () => {
    if (source.readyState !== EventSource.CLOSED) said.textContent = "The run cannot be reached any more.";
  });
}
