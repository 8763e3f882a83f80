// The requests of the page. Addresses are relative: the service may run behind a prefix.

const KEY = "genpool-api-key"; // in sessionStorage: gone when the tab is closed, never in a link

/** A request that failed, with a message for people. */
export class ServiceError extends Error {
  /**
   * @param {string} message what went wrong, as the service says it
   * @param {number} status HTTP status; 0 where the service did not answer
   */
  constructor(message, status) {
    super(message);
    this.status = status;
  }
}

/** Remembers the key of a service that asks for one, until the tab is closed. */
export const rememberKey = (key) => sessionStorage.setItem(KEY, key);

async function request(path, options) {
  const headers = { Accept: "application/json" };
  if (options.body) headers["Content-Type"] = "application/json";
  const key = sessionStorage.getItem(KEY);
  if (key) headers.Authorization = `Bearer ${key}`;
  let response;
  try {
    response = await fetch(path, { ...options, headers });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new ServiceError("The service does not answer. Is genpool serve still running?", 0);
  }
  const body = await response.json().catch(() => null);
  if (response.ok && body) return body;
  const message = body?.error?.message ?? `The service answered with status ${response.status}.`;
  throw new ServiceError(message, response.status);
}

const post = (path, content, signal) =>
  request(path, { method: "POST", body: JSON.stringify(content), signal });

/** Returns what the service says about its model: heads, labels, limits, rows of the index. */
export const readModel = async () => (await request("v1/models", {})).data[0];

/** Returns the explanation of one sentence or two, with the weights of every dimension. */
export const explain = (sentences, signal) =>
  post("explain", { input: sentences, dimension_weights: true }, signal);

/** Returns the sentences of the index that are closest to a query: {row, score, sentence}. */
export const search = async (query, signal) =>
  (await post("search", { query, top: 10 }, signal)).results[0].hits;

/**
 * Returns the weights of every dimension as bytes.
 * @returns {{heads: number, tokens: number, dimensions: number, scale: number, bytes: Uint8Array}}
 *   byte (head * tokens + token) * dimensions + dimension; a weight is byte / 255 * scale
 */
export function decodeWeights({ shape, scale, data }) {
  const bytes = Uint8Array.from(atob(data), (character) => character.charCodeAt(0));
  return { heads: shape[0], tokens: shape[1], dimensions: shape[2], scale, bytes };
}
