// What the page holds: the index of the questions, the sets that buttons show, and the packed details.

function storedJson(id) {
  return JSON.parse(document.getElementById(id).textContent);
}

let prefixesOfDataset = null;

// The namespaces that queries of the dataset declare, by their prefixes.
function datasetPrefixes() {
  prefixesOfDataset ??= storedJson("lists").prefixes ?? {};
  return prefixesOfDataset;
}

// Details lie behind the script, so that the list can be shown before all of them are read.
const pageRead = new Promise((resolve) => {
  if (document.readyState !== "loading") resolve();
  else document.addEventListener("DOMContentLoaded", () => resolve());
});

const KEPT_CHUNKS = 4;
const chunks = new Map(); // chunk number -> promise of its details by key, the one used last at the end

function chunkDetails(number) {
  const details = chunks.get(number) ?? unpackedChunk(number);
  chunks.delete(number);
  chunks.set(number, details);
  if (chunks.size > KEPT_CHUNKS) chunks.delete(chunks.keys().next().value);
  return details;
}

async function unpackedChunk(number) {
  if (typeof DecompressionStream === "undefined") {
    throw new Error("This browser cannot unpack the details (it has no DecompressionStream). A browser of 2023 or later can.");
  }
  await pageRead;
  const packed = document.getElementById(`chunk-${number}`);
  if (!packed) throw new Error("The details are missing from this file: it was not saved as a whole.");
  const bytes = Uint8Array.from(atob(packed.textContent), (character) => character.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return JSON.parse(await new Response(stream).text());
}

// Give the details of a row of the index.
async function detailsOf(row) {
  return (await chunkDetails(row.c))[row.k];
}
