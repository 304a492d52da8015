// What the address says after "#": the name of a section, and filters that a link keeps.

// Parts of the address after "#"; one that cannot be read is left out.
function hashParts() {
  const parts = {};
  for (const part of location.hash.slice(1).split("&")) {
    const equals = part.indexOf("=");
    if (equals < 1) continue; // the name of a section
    try {
      parts[part.slice(0, equals)] = decodeURIComponent(part.slice(equals + 1));
    } catch {
      // a broken address shows all questions
    }
  }
  return parts;
}

// The section that the address names before its filters; "" where it names none.
function hashSection() {
  const first = location.hash.slice(1).split("&")[0];
  return !first.includes("=") && document.getElementById(first) ? first : "";
}

// Keep the filters that are set in the address, but those that are as they are by default.
function keepInHash(filters, section = "", defaults = {}) {
  const named = Object.entries(filters)
    .filter(([name, value]) => value !== "" && value !== defaults[name])
    .map(([name, value]) => `${name}=${encodeURIComponent(value)}`);
  const parts = section ? [section, ...named] : named;
  const address = parts.length ? `#${parts.join("&")}` : location.pathname + location.search;
  try {
    history.replaceState(null, "", address);
  } catch {
    // the address then stays as it is
  }
}
