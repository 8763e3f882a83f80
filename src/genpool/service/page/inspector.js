// One word: its influence and its weight in every head.

import { byId, element, fill } from "./dom.js";
import { MEASURES, largest } from "./measures.js";

function bar(share, kind) {
  return element(
    "span",
    { class: `bar ${kind}` },
    element("i", { style: { width: `${Math.max(0.5, 100 * share)}%` } }),
  );
}

function cell(value, top, measure, kind) {
  return element(
    "td",
    {},
    bar(value / top, kind),
    element("span", { class: "value" }, measure.format(value)),
  );
}

/** Shows a word of a sentence in every head. */
export function showWord(sentence, index) {
  const token = sentence.tokens[index];
  if (!token) {
    fill(byId("word"), element("p", { class: "note" }, "There is no word to show."));
    return;
  }
  const { influence, weight } = MEASURES;
  const topInfluence = largest([...sentence.head_influence.flat(), ...sentence.vector_influence]);
  const topWeight = largest(sentence.head_weights.flat());
  const row = (title, turned, share) =>
    element(
      "tr",
      {},
      element("th", { scope: "row" }, title),
      cell(turned, topInfluence, influence, "influence"),
      share === null
        ? element("td", { class: "none" }, "\u2013")
        : cell(share, topWeight, weight, "weight"),
    );
  fill(
    byId("word"),
    element(
      "p",
      { class: "inspected" },
      element("mark", {}, token.text),
      ` word ${index + 1} of ${sentence.tokens.length}`,
    ),
    element(
      "table",
      { class: "inspector" },
      element(
        "thead",
        {},
        element(
          "tr",
          {},
          element("th", { scope: "col" }, element("span", { class: "hidden" }, "Head")),
          element("th", { scope: "col" }, "Influence"),
          element("th", { scope: "col" }, "Weight"),
        ),
      ),
      element(
        "tbody",
        {},
        row("Sentence", sentence.vector_influence[index], null),
        ...sentence.head_influence.map((values, head) =>
          row(`Head ${head + 1}`, values[index], sentence.head_weights[head][index]),
        ),
      ),
    ),
    element("p", { class: "note" }, "Point at a word, or move with Tab and the arrow keys."),
  );
}
