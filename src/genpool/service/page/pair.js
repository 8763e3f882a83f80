// Two sentences: similarity overall and per head, the label, and the words that carry them.

import { signedStyle } from "./colors.js";
import { byId, decimal, element, fill, percent } from "./dom.js";
import { largest } from "./measures.js";
import { wordRow } from "./words.js";

const meter = (share, kind = "") =>
  element(
    "span",
    { class: `meter ${kind}` },
    element("i", { style: { width: `${100 * Math.min(Math.max(share, 0), 1)}%` } }),
  );

function measured(title, share, text, kind) {
  return element(
    "li",
    { class: kind },
    element("span", { class: "measured-name" }, title),
    meter(share, kind),
    element("span", { class: "value" }, text),
  );
}

function similarityPart(pair) {
  return element(
    "div",
    { class: "pair-part" },
    element(
      "p",
      { class: "big" },
      element("strong", { id: "similarity" }, decimal(pair.similarity)),
      " similarity (cosine)",
    ),
    element(
      "ul",
      { class: "measured", "aria-label": "Similarity per head" },
      ...pair.head_similarity.map((value, head) =>
        measured(`Head ${head + 1}`, value, decimal(value)),
      ),
    ),
  );
}

function labelPart({ label, labels, probabilities }) {
  return element(
    "div",
    { class: "pair-part" },
    element(
      "p",
      { class: "big" },
      element("strong", { id: "label" }, label),
      " is the most probable label",
    ),
    element(
      "ul",
      { class: "measured", "aria-label": "Probability of each label" },
      ...labels.map((name, index) =>
        measured(
          name,
          probabilities[index],
          percent(probabilities[index]),
          name === label ? "winner" : "other",
        ),
      ),
    ),
  );
}

const CARRIES = {
  similarity: {
    title: "Which words carry the similarity",
    more: "makes them more alike",
    less: "makes them less alike",
    describe: (value) =>
      `${value < 0 ? "lowers" : "raises"} the cosine by ${decimal(Math.abs(value), 3)}`,
  },
  label: {
    title: "Which words decide the label",
    more: "speaks for the label",
    less: "speaks against it",
    describe: (value) =>
      `${value < 0 ? "lowers" : "raises"} its probability by ${percent(Math.abs(value))}`,
  },
};

function carriedWords(kind, tokens, influence) {
  const { title, more, less, describe } = CARRIES[kind];
  const top = largest(influence.flat());
  const key = (value, text) =>
    element(
      "span",
      { class: "key" },
      element("i", { class: "swatch", style: signedStyle(value) }),
      text,
    );
  return element(
    "div",
    { class: "carried" },
    element("h3", {}, title),
    element(
      "div",
      { class: "carried-rows" },
      ...tokens.map((words, side) =>
        wordRow(words, {
          label: `${side ? "Second" : "First"} sentence`,
          share: (index) => influence[side][index] / top,
          style: signedStyle,
          describe: (index) => describe(influence[side][index]),
          select: () => {},
        }),
      ),
    ),
    element("div", { class: "legend" }, key(0.75, more), key(-0.75, less)),
  );
}

function carriesChoice(state, choose) {
  const option = (value, text) =>
    element(
      "label",
      {},
      element("input", {
        type: "radio",
        name: "carries",
        value,
        checked: state.carries === value,
        on: { change: () => choose(value) },
      }),
      element("span", {}, text),
    );
  return element(
    "fieldset",
    { class: "segments small" },
    element("legend", { class: "hidden" }, "Colour the words by"),
    option("similarity", "Similarity"),
    option("label", "Label"),
  );
}

/**
 * Shows what the service says about two sentences, or about the label of one.
 * @param {object} explanation answer of the service
 * @param {object} state what the page shows
 * @param {function} choose called with "similarity" or "label"
 */
export function showPair({ sentences, pair, prediction }, state, choose) {
  byId("pair").hidden = !pair && !prediction;
  if (byId("pair").hidden) return;
  byId("pair-title").textContent = pair ? "How alike are they?" : "The label";
  const kind = pair && (state.carries === "similarity" || !prediction) ? "similarity" : "label";
  const carried =
    kind === "similarity"
      ? carriedWords(
          kind,
          sentences.map((sentence) => sentence.tokens),
          pair.similarity_influence,
        )
      : carriedWords(kind, prediction.tokens, prediction.label_influence);
  const focused = document.activeElement?.name === "carries"; // the radio buttons are replaced
  fill(
    byId("pair-body"),
    element(
      "div",
      { class: "pair-parts" },
      pair && similarityPart(pair),
      prediction && labelPart(prediction),
    ),
    pair && prediction && carriesChoice(state, choose),
    carried,
  );
  if (focused) byId("pair-body").querySelector("input:checked")?.focus();
}
