// Numbers as text; amounts.py says the same for what the server side writes.

const NOT_MEASURED = "–";
const isNumber = (value) => typeof value === "number" && Number.isFinite(value);

function scoreText(value) {
  return isNumber(value) ? value.toFixed(3) : NOT_MEASURED;
}

// The end of a range, with no more digits than it needs.
function plainNumber(value) {
  return isNumber(value) ? String(Number(value.toPrecision(4))) : NOT_MEASURED;
}

// Without Intl, which takes long to start: the list of questions needs nothing else of it.
function countText(value) {
  return isNumber(value) ? String(Math.round(value)).replace(/\B(?=(\d{3})+$)/g, ",") : NOT_MEASURED;
}

function secondsText(seconds) {
  if (!isNumber(seconds)) return NOT_MEASURED;
  if (seconds >= 3600) {
    const minutes = Math.round(seconds / 60);
    return `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
  }
  if (seconds >= 60) {
    const whole = Math.round(seconds);
    return `${Math.floor(whole / 60)} min ${whole % 60} s`;
  }
  if (seconds >= 10) return `${seconds.toFixed(1)} s`;
  return seconds > 0 && seconds < 0.0995 ? `${(seconds * 1000).toFixed(0)} ms` : `${seconds.toFixed(2)} s`;
}

function dollarsText(amount) {
  if (!isNumber(amount)) return NOT_MEASURED;
  const size = Math.abs(amount);
  const places = size === 0 || size >= 0.1 ? 2 : Math.min(1 - Math.floor(Math.log10(size)), 10);
  return `$${amount.toLocaleString("en-GB", { minimumFractionDigits: places, maximumFractionDigits: places })}`;
}

// Any value by the unit of its metric.
function amountText(value, unit) {
  if (!isNumber(value)) return NOT_MEASURED;
  const known = { score: scoreText, tokens: countText, seconds: secondsText, usd: dollarsText, count: numberText };
  return Object.hasOwn(known, unit) ? known[unit](value) : `${digitsText(value)} ${unit}`;
}

// A number with three digits at least, and six of them behind the point at most.
function digitsText(value) {
  const places = value === 0 ? 0 : Math.min(Math.max(2 - Math.floor(Math.log10(Math.abs(value))), 0), 6);
  return value.toLocaleString("en-GB", { minimumFractionDigits: places, maximumFractionDigits: places }).replace("-", "−");
}

function numberText(value) {
  return Number.isInteger(value) ? countText(value) : value.toLocaleString("en-GB", { minimumFractionDigits: 3, maximumFractionDigits: 3 });
}

// Any measured value: whole numbers as they are, others with three digits.
function valueText(value) {
  if (!isNumber(value)) return value === null || value === undefined ? NOT_MEASURED : String(value);
  return Number.isInteger(value) && Math.abs(value) > 1 ? countText(value) : value.toFixed(3);
}

// "1 question", "2 questions".
function counted(count, noun) {
  return `${countText(count)} ${noun}${count === 1 ? "" : "s"}`;
}
