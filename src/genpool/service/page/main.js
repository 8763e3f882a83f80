// Joins the parts: the form, the requests, the address, and what is shown.

import { ServiceError, decodeWeights, explain, readModel, search } from "./api.js";
import { showDimensions } from "./dimensions.js";
import { byId, check } from "./dom.js";
import { EXAMPLES, isExample, textsOf } from "./examples.js";
import { showForm } from "./form.js";
import { makeHeadButtons, markHeadButtons, showHeads, toggleHead } from "./heads.js";
import { showHits } from "./hits.js";
import { showWord } from "./inspector.js";
import { argmax } from "./measures.js";
import { showOverlap } from "./overlap.js";
import { showPair } from "./pair.js";
import { hideProblem, showProblem } from "./problem.js";
import { copyLink } from "./share.js";
import { readState, writeState } from "./state.js";
import { startTheme } from "./theme.js";
import { listenToArrows, markWord } from "./words.js";

const TYPING_MILLISECONDS = 350; // a request is sent after a pause of typing
const ADDRESS_MILLISECONDS = 300; // browsers refuse to change the address too often

let state = readAddress();
let answer = null; // of /explain
let weights = []; // decoded, one per sentence
let pending = null; // AbortController of the request under way
let typing = 0;
let addressing = 0;

// The address

/** Returns the state of the address; without a sentence, that of the first example. */
function readAddress() {
  const read = readState(location.hash);
  return read.first ? read : { ...read, ...textsOf(EXAMPLES[read.mode][0]) };
}

function writeAddress() {
  clearTimeout(addressing);
  addressing = setTimeout(
    () => history.replaceState(null, "", writeState(state)),
    ADDRESS_MILLISECONDS,
  );
}

/** Changes the state as a step that the browser's Back button can take back. */
function go(changes) {
  clearTimeout(addressing);
  state = { ...state, ...changes };
  history.pushState(null, "", writeState(state));
  showForm(state, go);
  run();
}

/** Changes what is shown of the same answer. */
function change(changes) {
  state = { ...state, ...changes };
  writeAddress();
  render();
}

// The form

function readTyped(event) {
  state = { ...state, [event.target.id]: event.target.value, word: null };
  writeAddress();
  clearTimeout(typing);
  typing = setTimeout(run, TYPING_MILLISECONDS);
}

function chooseMode(mode) {
  // What a person typed is kept; an example makes room for one of the other mode.
  const texts = isExample(state.first) || !state.first ? textsOf(EXAMPLES[mode][0]) : {};
  go({ mode, ...texts, word: null, side: 0 });
}

// Requests

function hideResults() {
  answer = null;
  for (const id of ["pair", "hits", "details"]) byId(id).hidden = true;
}

function receiveExplanation(received) {
  answer = received;
  weights = received.sentences.map(
    (sentence) => sentence.dimension_weights && decodeWeights(sentence.dimension_weights),
  );
  const heads = received.sentences[0].head_weights.length;
  if (byId("heads").childElementCount !== heads + 1) {
    makeHeadButtons(heads, (head) => change({ heads: toggleHead(state.heads, head) }));
  }
  state.heads = state.heads.filter((head) => head < heads);
  byId("hits").hidden = true;
  byId("details").hidden = false;
  const words = received.sentences.map((sentence) => sentence.tokens.length).join(" and ");
  byId("status").textContent = `Explained: ${words} words, ${heads} heads.`;
  render();
}

function receiveHits(hits) {
  hideResults();
  showHits(hits, (sentence) => go({ mode: "two", second: sentence, word: null, side: 0 }));
  byId("status").textContent = `Found ${hits.length} sentences.`;
}

async function run() {
  clearTimeout(typing);
  pending?.abort();
  hideProblem();
  const { mode, first, second } = state;
  const sentences = mode === "two" ? [first, second] : [first];
  if (sentences.some((sentence) => !sentence.trim())) {
    hideResults();
    return;
  }
  const controller = new AbortController();
  pending = controller;
  byId("compose").classList.add("busy");
  try {
    if (mode === "search") receiveHits(await search(first, controller.signal));
    else receiveExplanation(await explain(sentences, controller.signal));
  } catch (error) {
    if (controller.signal.aborted) return; // a newer request has taken its place
    hideResults();
    if (!(error instanceof ServiceError)) throw error;
    showProblem(error, run);
  } finally {
    if (pending === controller) byId("compose").classList.remove("busy");
  }
}

// What is shown

function select(index) {
  if (index === state.word) return;
  state.word = index;
  writeAddress();
  showSelected();
}

function showSelected() {
  const sentence = answer.sentences[currentSide()];
  const index = sentence.tokens[state.word ?? -1] ? state.word : argmax(sentence.vector_influence);
  markWord(byId("words"), index);
  byId("word-card").classList.toggle("tapped", state.word !== null);
  showWord(sentence, index);
}

const currentSide = () => Math.min(state.side, answer.sentences.length - 1);

function render() {
  if (!answer) return;
  const side = currentSide();
  const sentence = answer.sentences[side];
  byId("sides").hidden = answer.sentences.length < 2;
  for (const group of ["by", "order", "side"]) check(group, state[group]);
  markHeadButtons(state.heads);
  showPair(answer, state, (carries) => change({ carries }));
  showHeads(sentence, state, select);
  showOverlap(sentence, state.heads, (heads) => change({ heads }));
  showDimensions(sentence, weights[side], state, select);
  showSelected();
}

function listen() {
  for (const id of ["first", "second"]) {
    byId(id).addEventListener("input", readTyped);
    byId(id).addEventListener("keydown", (event) => {
      if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
      event.preventDefault();
      run();
    });
  }
  byId("compose").addEventListener("submit", (event) => {
    event.preventDefault();
    run();
  });
  document.addEventListener("change", ({ target }) => {
    if (target.name === "mode") chooseMode(target.value);
    if (target.name === "by" || target.name === "order") change({ [target.name]: target.value });
    if (target.name === "side") change({ side: Number(target.value), word: null });
  });
  byId("share").addEventListener("click", () => copyLink(writeState(state)));
  addEventListener("popstate", () => {
    state = readAddress();
    showForm(state, go);
    run();
  });
  document.querySelector(".skip").addEventListener("click", (event) => {
    event.preventDefault(); // its "#results" would replace the state in the address
    byId("results").focus();
  });
  listenToArrows(byId("results"));
}

async function start() {
  hideProblem();
  let model;
  try {
    model = await readModel();
  } catch (error) {
    if (!(error instanceof ServiceError)) throw error;
    showProblem(error, start);
    return;
  }
  byId("model").textContent =
    `${model.id}: ${model.heads} heads of ${model.head_dimensions} dimensions`;
  byId("model").hidden = false;
  byId("search-mode").hidden = model.index_rows === null;
  if (model.index_rows === null && state.mode === "search") state.mode = "one";
  showForm(state, go);
  run();
}

startTheme(render);
listen();
showForm(state, go);
start();
