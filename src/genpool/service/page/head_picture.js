// The picture of a head: tokens by dimensions, with a cursor for the pointer and the arrow keys.

import { cividis } from "./colors.js";
import { dimensionOrder, leadingTokens } from "./dimension_order.js";
import { decimal, element } from "./dom.js";

const MIN_DIMENSION_PIXELS = 1; // narrower screens scroll
const COLORS = cividis();
export const GAMMA = 2 / 3; // most weights are small: brighter than in proportion, they can be told apart
const color = (byte) => COLORS[Math.round((byte / 255) ** GAMMA * 255)];

const rowHeight = (tokens) => (tokens <= 16 ? 18 : tokens <= 40 ? 14 : 12);

/** Returns the picture of a head, one pixel per token and dimension. */
function plainPicture({ tokens, dimensions, bytes }, head, order) {
  const canvas = element("canvas", { width: dimensions, height: tokens });
  const context = canvas.getContext("2d");
  const image = context.createImageData(dimensions, tokens);
  for (let token = 0; token < tokens; token += 1) {
    order.forEach((dimension, column) => {
      const rgb = color(bytes[(head * tokens + token) * dimensions + dimension]);
      image.data.set([...rgb, 255], 4 * (token * dimensions + column));
    });
  }
  context.putImageData(image, 0, 0);
  return canvas;
}

/** The picture of one head, with a cursor that the pointer and the arrow keys move. */
export class HeadPicture {
  constructor(sentence, weights, head, order, select) {
    this.sentence = sentence;
    this.weights = weights;
    this.head = head;
    this.select = select;
    this.order = dimensionOrder(weights, head, order);
    this.picture = plainPicture(weights, head, this.order);
    this.cursor = null; // [token, column]
    const height = rowHeight(weights.tokens);
    this.readout = element("output", { class: "readout" });
    this.canvas = element("canvas", {
      class: "picture",
      tabindex: 0,
      role: "img",
      "aria-label": this.summary(),
      style: {
        height: `${height * weights.tokens}px`,
        "min-width": `${MIN_DIMENSION_PIXELS * weights.dimensions}px`,
      },
      on: {
        pointerdown: (event) => this.point(event),
        pointermove: (event) => this.point(event),
        pointerleave: () => this.move(null),
        blur: () => this.move(null),
        keydown: (event) => this.press(event),
      },
    });
    this.node = element(
      "figure",
      { class: "head-picture" },
      element("figcaption", {}, element("strong", {}, `Head ${head + 1}`), this.readout),
      element(
        "div",
        { class: "picture-grid" },
        this.labels(height),
        element("div", { class: "picture-scroll" }, this.canvas),
      ),
    );
  }

  /** The words at the left, each with the number of dimensions that it leads. */
  labels(height) {
    const counts = this.counts();
    const label = (token, index) =>
      element(
        "div",
        {
          style: {
            height: `${height}px`,
            "line-height": `${height}px`,
            "font-size": `${Math.min(13, height - 2)}px`,
          },
        },
        element("span", {}, token.text),
        element("small", {}, `${counts[index]}`),
      );
    return element(
      "div",
      { class: "picture-words", "aria-hidden": "true" },
      ...this.sentence.tokens.map(label),
    );
  }

  counts() {
    const counts = new Array(this.weights.tokens).fill(0);
    for (const token of leadingTokens(this.weights, this.head)) counts[token] += 1;
    return counts;
  }

  summary() {
    const counts = this.counts();
    const words = this.sentence.tokens.map((token, index) => `${token.text} ${counts[index]}`);
    return `Head ${this.head + 1}: the number of dimensions in which each word has the largest weight: ${words.join(", ")}. Arrow keys read single weights.`;
  }

  draw() {
    const scale = window.devicePixelRatio || 1;
    const { clientWidth, clientHeight } = this.canvas;
    this.canvas.width = Math.round(clientWidth * scale);
    this.canvas.height = Math.round(clientHeight * scale);
    const context = this.canvas.getContext("2d");
    context.imageSmoothingEnabled = false;
    context.drawImage(this.picture, 0, 0, this.canvas.width, this.canvas.height);
    if (!this.cursor) return;
    const [token, column] = this.cursor;
    const row = this.canvas.height / this.weights.tokens;
    const columnWidth = this.canvas.width / this.weights.dimensions;
    context.strokeStyle = "#ffffff";
    context.lineWidth = scale;
    context.strokeRect(0, token * row, this.canvas.width, row);
    context.strokeRect(
      (column + 0.5) * columnWidth - 2 * scale,
      token * row - scale,
      4 * scale,
      row + 2 * scale,
    );
  }

  point(event) {
    const box = this.canvas.getBoundingClientRect();
    const part = (offset, size, count) =>
      Math.min(Math.max(Math.floor((offset / size) * count), 0), count - 1);
    this.move([
      part(event.clientY - box.top, box.height, this.weights.tokens),
      part(event.clientX - box.left, box.width, this.weights.dimensions),
    ]);
  }

  press(event) {
    const steps = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] };
    const step = steps[event.key];
    if (!step) return;
    event.preventDefault();
    const [token, column] = this.cursor ?? [0, event.key === "ArrowRight" ? -1 : 0];
    const within = (value, count) => Math.min(Math.max(value, 0), count - 1);
    const stride = event.shiftKey ? 10 : 1;
    this.move([
      within(token + (this.cursor ? step[0] : 0), this.weights.tokens),
      within(column + stride * step[1], this.weights.dimensions),
    ]);
  }

  move(cursor) {
    this.cursor = cursor;
    if (cursor) {
      const [token, column] = cursor;
      const { tokens, dimensions, bytes, scale } = this.weights;
      const dimension = this.order[column];
      const byte = bytes[(this.head * tokens + token) * dimensions + dimension];
      const word = this.sentence.tokens[token].text;
      this.readout.textContent = `${word}, dimension ${dimension}: weight ${decimal((byte / 255) * scale)}`;
      this.select(token);
    } else {
      this.readout.textContent = "";
    }
    this.draw();
  }
}
