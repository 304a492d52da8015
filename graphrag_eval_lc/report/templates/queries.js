// Queries and arguments as code: their colours, and the tokens that another query does not have.

const MOST_TOKENS = 1500;
const KEYWORDS = new Set(
  `a add all and any as asc ask avg base bind bound by call case coalesce concat construct contains count create data datatype
  default delete desc describe detach distinct drop else end exists false filter foreach from full graph group group_concat
  having if in inner insert into is isblank isiri isliteral isuri join lang langmatches lcase left limit match max merge min
  minus named not null offset on optional or order outer prefix reduced regex remove replace return right sample select
  separator service set silent skip str strdt strends strlang strlen strstarts substr sum then true ucase undef union unwind
  update using values when where with xor yield`.split(/\s+/),
);
const TOKEN = new RegExp(
  [
    String.raw`(?<space>\s+)`,
    String.raw`(?<iri><[^<>"{}|^\x60\\\s]*>)`,
    String.raw`(?<comment>#[^\n]*|--(?![>\[(])[^\n]*|//[^\n]*)`,
    String.raw`(?<text>"""[\s\S]*?"""|'''[\s\S]*?'''|"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*')`,
    String.raw`(?<variable>[?$][\p{L}_][\p{L}\p{N}_]*)`,
    String.raw`(?<name>(?:[\p{L}_](?:[\p{L}\p{N}_-]|\.(?=[\p{L}\p{N}_-]))*)?:(?:[\p{L}\p{N}_-]|\.(?=[\p{L}\p{N}_-]))+)`,
    String.raw`(?<declared>[\p{L}_][\p{L}\p{N}_-]*:(?=\s*<))`,
    String.raw`(?<number>\d+(?:\.\d+)?(?![\p{L}\p{N}_-]))`,
    String.raw`(?<word>[\p{L}\p{N}_](?:[\p{L}\p{N}_]|[.-](?=[\p{L}\p{N}_]))*)`,
    String.raw`(?<other>[\s\S])`,
  ].join("|"),
  "gu",
);
const PREFIX = /\bPREFIX\s+([\p{L}\p{N}_.-]*):\s*<([^<>\s]*)>/giu;

// Give the namespaces that a query declares, by their prefixes.
function prefixesIn(query) {
  return Object.fromEntries([...(query ?? "").matchAll(PREFIX)].map(([, prefix, namespace]) => [prefix, namespace]));
}

// Give the tokens of a text: each with its kind, and a key that is equal for what means the same; null for what never
// counts, such as white space, comments and prefixes.
function tokensOf(text) {
  const prefixes = prefixesIn(text);
  const tokens = [];
  let declares = 0;
  for (const { 0: shown, groups } of text.matchAll(TOKEN)) {
    let kind = Object.keys(groups).find((name) => groups[name] !== undefined);
    if (kind === "word" && KEYWORDS.has(shown.toLowerCase())) kind = "keyword";
    if (kind === "keyword" && shown.toLowerCase() === "prefix") declares = 3; // the word, the prefix, the namespace
    const isSilent = kind === "space" || kind === "comment" || declares > 0;
    if (declares > 0 && kind !== "space") declares -= 1;
    tokens.push({ shown, kind, key: isSilent ? null : tokenKey(shown, kind, prefixes) });
  }
  return tokens;
}

function tokenKey(shown, kind, prefixes) {
  if (kind === "variable") return "?"; // queries may call them as they like
  if (kind === "keyword") return shown.toLowerCase();
  if (kind !== "name") return shown;
  const [prefix, local] = [shown.slice(0, shown.indexOf(":")), shown.slice(shown.indexOf(":") + 1)];
  return Object.hasOwn(prefixes, prefix) ? `<${prefixes[prefix]}${local}>` : shown;
}

// What a query begins with, and signs that it has and a sentence hardly ever: searches for documents are sentences.
const FIRST_WORDS = /^(?:\s|#[^\n]*\n|--[^\n]*\n)*(?:ask|base|call|construct|create|delete|describe|explain|insert|load|match|merge|optional|prefix|profile|select|unwind|update|use|with)\b/iu;

function looksLikeQuery(text) {
  return FIRST_WORDS.test(text) && /[(){}<>=*]/u.test(text);
}

// Give a text as code, of a query coloured, in which what another text does not have is marked.
function coloured(text, other, isQuery) {
  const tokens = tokensOf(text);
  const counted = tokens.filter(({ key }) => key !== null);
  const others = typeof other === "string" && other !== text ? tokensOf(other).filter(({ key }) => key !== null) : counted;
  const isMarked = others !== counted && Math.max(counted.length, others.length) <= MOST_TOKENS;
  const marked = new Set(isMarked ? markedTokens(counted, others) : []);
  return tokens.map((token) => {
    const made = !isQuery || token.kind === "space" || token.kind === "other" ? token.shown : element("span", { class: `code-${token.kind}` }, token.shown);
    return marked.has(token) ? element("mark", {}, made) : made;
  });
}

// What stands between the parts of a query: like the names of variables it says nothing where it differs alone.
const SEPARATORS = new Set([".", ";", ",", "/", "(", ")", "{", "}", "[", "]"]);

// Give the tokens that the other list does not have, neither in the same order nor moved, and the variables beside them.
function markedTokens(tokens, others) {
  const pairs = longestCommon(tokens, others);
  const shared = new Set(pairs.flat());
  const moved = others.filter((token) => !shared.has(token)).map(({ key }) => key);
  const isTelling = (token) => token.kind !== "variable" && !SEPARATORS.has(token.shown);
  const runs = [[]];
  for (const token of tokens) {
    const place = shared.has(token) || !isTelling(token) ? -1 : moved.indexOf(token.key);
    if (place >= 0) moved.splice(place, 1);
    if (place >= 0 || shared.has(token)) runs.push([]);
    else runs.at(-1).push(token);
  }
  return runs.filter((run) => run.some(isTelling)).flat().filter((token) => !SEPARATORS.has(token.shown));
}

// Give the pairs of the longest run of tokens with equal keys that both lists have in the same order.
function longestCommon(tokens, others) {
  const width = others.length + 1;
  const lengths = new Uint16Array((tokens.length + 1) * width);
  for (let at = tokens.length - 1; at >= 0; at -= 1) {
    for (let to = others.length - 1; to >= 0; to -= 1) {
      const here = at * width + to;
      lengths[here] = tokens[at].key === others[to].key ? lengths[here + width + 1] + 1 : Math.max(lengths[here + width], lengths[here + 1]);
    }
  }
  const pairs = [];
  for (let at = 0, to = 0; at < tokens.length && to < others.length; ) {
    const here = at * width + to;
    if (tokens[at].key === others[to].key) {
      pairs.push([tokens[at], others[to]]);
      at += 1;
      to += 1;
    } else if (lengths[here + width] >= lengths[here + 1]) at += 1;
    else to += 1;
  }
  return pairs;
}

// Give the query and the other arguments of a call, each with a button that copies it; what the other call does not have
// is marked.
function callCode(call, title, other = {}) {
  const block = (text, another, label) => [
    codeBlock(coloured(text, another, label === "Query" && looksLikeQuery(text)), `${label}, ${title}`),
    element("p", { class: "copy-line" }, copyButton(`Copy ${label.toLowerCase()}`, text)),
  ];
  return [
    call.query ? block(call.query, other.query, "Query") : [],
    call.args ? block(call.args, other.args ?? (other.query ? "" : null), "Arguments") : [],
  ].flat();
}
