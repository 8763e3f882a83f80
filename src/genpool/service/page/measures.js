// The two measures of a word: influence (degrees that a vector turns) and weight (a share of one).

import { decimal, percent } from "./dom.js";

export const MEASURES = {
  influence: {
    note: "Influence: how far a vector turns, in degrees, when the word is left out of the pooling.",
    rows: (sentence) => sentence.head_influence,
    format: (value) => `${decimal(value, 1)}\u00b0`,
  },
  weight: {
    note: "Weight: a word\u2019s share in the head\u2019s vector, as the mean over all dimensions.",
    rows: (sentence) => sentence.head_weights,
    format: percent,
  },
};

/** Returns the largest value, at least a tiny number, so that one can divide by it. */
export const largest = (values) => Math.max(1e-9, ...values.map(Math.abs));

/** Returns the index of the largest value. */
export const argmax = (values) =>
  values.reduce((best, value, index) => (value > values[best] ? index : best), 0);
