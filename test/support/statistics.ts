/** What measurements say together. */

/** NaN of none. */
export function median(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b);
  const middle = sorted.length >> 1;
  const upper = sorted[middle] ?? Number.NaN;
  return sorted.length % 2 === 1 ? upper : ((sorted[middle - 1] ?? Number.NaN) + upper) / 2;
}

/** What one value in a hundred is above. NaN of none. */
export function p99(values: readonly number[] | Float64Array): number {
  return Float64Array.from(values).sort()[Math.floor(values.length * 0.99)] ?? Number.NaN;
}
