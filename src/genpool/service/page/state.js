// What the page shows is in its address, after the "#": a copied link shows the same.
// The part after "#" is not sent to a server, so sentences stay out of access logs.

export const START = {
  mode: "one", // one | two | search
  first: "",
  second: "",
  by: "influence", // influence | weight
  heads: [], // none: all heads; one; or two, which are compared
  side: 0, // which of two sentences the details show
  word: null, // index of the word in the inspector; null: the one with the most influence
  order: "grouped", // grouped | stored
  carries: "similarity", // similarity | label: what the words of a pair are coloured by
};

const CHOICES = {
  mode: ["one", "two", "search"],
  by: ["influence", "weight"],
  order: ["grouped", "stored"],
  carries: ["similarity", "label"],
};

const index = (text) => (/^\d{1,4}$/.test(text ?? "") ? Number(text) : null);

/** Returns the state that an address describes; missing and invalid parts are as in START. */
export function readState(hash) {
  const parameters = new URLSearchParams(hash.replace(/^#/, ""));
  const state = { ...START };
  for (const [name, allowed] of Object.entries(CHOICES)) {
    if (allowed.includes(parameters.get(name))) state[name] = parameters.get(name);
  }
  state.first = parameters.get("first") ?? START.first;
  state.second = parameters.get("second") ?? START.second;
  state.side = parameters.get("side") === "2" ? 1 : 0;
  state.word = index(parameters.get("word"));
  const heads = (parameters.get("heads") ?? "").split(",").map(index);
  state.heads = [...new Set(heads.filter((head) => head > 0).map((head) => head - 1))].slice(0, 2);
  return state;
}

/** Returns the address of a state, from the "#"; parts that are as in START are left out. */
export function writeState(state) {
  const parameters = new URLSearchParams();
  for (const name of ["mode", "first", "second", "by", "order", "carries"]) {
    if (state[name] !== START[name]) parameters.set(name, state[name]);
  }
  if (state.heads.length) parameters.set("heads", state.heads.map((head) => head + 1).join(","));
  if (state.side) parameters.set("side", "2");
  if (state.word !== null) parameters.set("word", state.word);
  const text = parameters.toString();
  return text ? `#${text}` : "#";
}
