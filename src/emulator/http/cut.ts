/** Long texts and headers, shortened for a log that keeps many. */

/** Kept of one header's value, and of its name. */
const MOST_OF_HEADER = 1024;
const MOST_HEADERS = 64;
/** Kept of all headers of a call together; then come no more. */
const MOST_OF_HEADERS = 4096;

/** The beginning of a text that is longer than `most`, with a mark. `length`: of what the text stands for. */
export function cutText(text: string, most: number, length = text.length): string {
  return text.length <= most ? text : `${copied(text.slice(0, most))} [cut, ${length} in all]`;
}

/** The first of the entries. */
export function cutHeaders(headers: readonly (readonly [name: string, value: string])[]): Record<string, string> {
  const kept: [string, string][] = [];
  let left = MOST_OF_HEADERS;
  for (const [name, value] of headers) {
    if (left <= 0 || kept.length === MOST_HEADERS) {
      // No header can have this name.
      kept.push(["[cut]", `${headers.length} in all`]);
      break;
    }
    const header: [string, string] = [cutText(name, MOST_OF_HEADER), cutText(value, MOST_OF_HEADER)];
    kept.push(header);
    left -= header.join("").length;
  }
  return Object.fromEntries(kept);
}

/** With memory of its own: a slice keeps the whole text that it was cut from. */
function copied(text: string): string {
  return Buffer.from(text).toString();
}
