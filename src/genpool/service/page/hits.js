// The sentences of an index that are closest to a query.

import { byId, decimal, element, fill } from "./dom.js";

/** Shows the results of a search. `compare(sentence)` is called to compare one with the query. */
export function showHits(hits, compare) {
  byId("hits").hidden = false;
  const item = ({ row, score, sentence }) =>
    element(
      "li",
      {},
      element("span", { class: "score" }, decimal(score)),
      element(
        "span",
        { class: "meter" },
        element("i", { style: { width: `${100 * Math.min(Math.max(score, 0), 1)}%` } }),
      ),
      element("span", { class: "hit-text" }, sentence),
      element(
        "button",
        {
          type: "button",
          class: "quiet",
          "aria-label": `Compare with row ${row}: ${sentence}`,
          on: { click: () => compare(sentence) },
        },
        "Compare",
      ),
    );
  fill(byId("hits-list"), ...hits.map(item));
  if (!hits.length)
    fill(byId("hits-list"), element("li", { class: "note" }, "The index has no sentence."));
}
