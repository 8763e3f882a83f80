// The order in which the dimensions of a head are drawn.

/** Returns, for each dimension of a head, the token with the largest weight. */
export function leadingTokens({ tokens, dimensions, bytes }, head) {
  return Array.from({ length: dimensions }, (_, dimension) => {
    const at = (token) => bytes[(head * tokens + token) * dimensions + dimension];
    let leader = 0;
    for (let token = 1; token < tokens; token += 1) if (at(token) > at(leader)) leader = token;
    return leader;
  });
}

/** Returns the dimensions of a head in the order that they are drawn in. */
export function dimensionOrder(weights, head, order) {
  const all = Array.from({ length: weights.dimensions }, (_, dimension) => dimension);
  if (order === "stored") return all;
  const leaders = leadingTokens(weights, head);
  const top = (dimension) =>
    weights.bytes[(head * weights.tokens + leaders[dimension]) * weights.dimensions + dimension];
  return all.sort((a, b) => leaders[a] - leaders[b] || top(b) - top(a) || a - b);
}
