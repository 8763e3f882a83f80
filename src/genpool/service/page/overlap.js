// How much the heads overlap: a small matrix whose cells compare two heads.

import { shareStyle } from "./colors.js";
import { byId, decimal, element, fill } from "./dom.js";

/** Shows the overlap matrix of a sentence. `compare(heads)` is called when a cell is pressed. */
export function showOverlap(sentence, heads, compare) {
  const overlap = sentence.head_overlap;
  byId("overlap-card").hidden = overlap.length < 2 || !sentence.tokens.length;
  const cell = (value, first, second) => {
    if (first === second) return element("td", { class: "same" }, "1");
    const pressed = heads.length === 2 && heads.includes(first) && heads.includes(second);
    return element(
      "td",
      {},
      element(
        "button",
        {
          type: "button",
          style: shareStyle(value),
          "data-pair": `${first},${second}`,
          "aria-pressed": pressed,
          "aria-label": `Heads ${first + 1} and ${second + 1}: ${decimal(value)}. Compare them`,
          on: { click: () => compare(pressed ? [] : [first, second]) },
        },
        decimal(value),
      ),
    );
  };
  const names = overlap.map((_, head) => element("th", { scope: "col" }, `${head + 1}`));
  const rows = overlap.map((values, first) =>
    element(
      "tr",
      {},
      element("th", { scope: "row" }, `${first + 1}`),
      ...values.map((value, second) => cell(value, first, second)),
    ),
  );
  const focused = document.activeElement?.dataset?.pair; // the button that was pressed is replaced
  fill(
    byId("overlap"),
    element(
      "table",
      { class: "matrix" },
      element(
        "thead",
        {},
        element(
          "tr",
          {},
          element("th", { scope: "col" }, element("span", { class: "hidden" }, "Head")),
          ...names,
        ),
      ),
      element("tbody", {}, ...rows),
    ),
    element(
      "p",
      { class: "note" },
      "1: two heads put their weights on the same words. Press a cell to compare its heads.",
    ),
  );
  if (focused) byId("overlap").querySelector(`[data-pair="${focused}"]`)?.focus();
}
