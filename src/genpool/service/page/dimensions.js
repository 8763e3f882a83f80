// The weight of every word in every dimension: one picture per head.

import { byId, decimal, element, fill } from "./dom.js";
import { GAMMA, HeadPicture } from "./head_picture.js";

function legend(scale) {
  const middle = decimal(scale * 0.5 ** (1 / GAMMA));
  const ends = `${decimal(scale)} weight (in the middle ${middle})`;
  return element(
    "div",
    { class: "legend" },
    element("span", { class: "key" }, "0", element("i", { class: "ramp" }), ends),
  );
}

let pictures = [];
const observer = new ResizeObserver(() => pictures.forEach((picture) => picture.draw()));

/**
 * Shows the pictures of the chosen heads of a sentence.
 * @param {object} sentence explanation of a sentence
 * @param {object|null} weights its decoded weights
 * @param {object} state what the page shows
 * @param {function} select called with the index of the word that is pointed at
 */
export function showDimensions(sentence, weights, state, select) {
  const drawable = weights !== null && weights.dimensions > 1 && weights.tokens > 0;
  byId("dimensions-card").hidden = !drawable;
  observer.disconnect();
  pictures = [];
  if (!drawable) return;
  const heads = state.heads.length
    ? state.heads
    : Array.from({ length: weights.heads }, (_, head) => head);
  pictures = heads.map((head) => new HeadPicture(sentence, weights, head, state.order, select));
  const order =
    state.order === "grouped"
      ? "Columns are grouped by the word with the largest weight; its number of dimensions is beside it."
      : "Columns are in the order of the vector; beside a word, the number of dimensions it leads.";
  fill(
    byId("dimensions"),
    element(
      "p",
      { class: "note" },
      `The weight of every word in each of the ${weights.dimensions} dimensions of a head. ${order}`,
    ),
    ...pictures.map((picture) => picture.node),
    legend(weights.scale),
  );
  for (const picture of pictures) {
    picture.draw();
    observer.observe(picture.canvas);
  }
}
