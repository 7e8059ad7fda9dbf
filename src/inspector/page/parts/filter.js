/** What the filters of the live list mean: the address' words in, the API's query out. */

/** Seven digits and more may be somebody's number: it stays in memory, and the address tells its place there. */
const NUMBER = /\d(?:[\s().-]{0,3}\d){6,}/;
const TELEPHONE = /^\+?[\d\s().-]+$/;
const LAST_OF_MINUTE_MS = 59_999;

/** @type {string[]} */
const kept = [];
/** Another with each page load, so that a place which an earlier one gave is none of this one's. */
const MINE = `*${crypto.getRandomValues(new Uint32Array(1))[0]?.toString(36)}.`;

/** What may stand in the address for it. @param {string} name @param {string} text */
export function toAddress(name, text) {
  const isPrivate = name === "peer" || (NUMBER.test(text) && (name === "reference" || TELEPHONE.test(text)));
  if (!text || !isPrivate) return text;
  if (!kept.includes(text)) kept.push(text);
  return MINE + kept.indexOf(text);
}

/** Empty for what another page kept. @param {string} text */
export function fromAddress(text) {
  if (!/^\*[\w.]+$/.test(text)) return text;
  return text.startsWith(MINE) ? (kept[Number(text.slice(MINE.length))] ?? "") : "";
}

/**
 * An `EventQuery` without page and limit. It throws for what another page kept: without that filter, all events would match.
 *
 * @param {Readonly<Record<string, string>>} params those of the address
 */
export function queryOf({ state, from, to, late, conflict, ...params }) {
  const text = (/** @type {string} */ name) => {
    const given = params[name] ?? "";
    const text = fromAddress(given);
    if (given && !text)
      throw new Error("The number in this filter is not kept over a reload: write it again, or clear.");
    return text;
  };
  const isOutcome = ["handled", "unhandled"].includes(state ?? "");
  const query = {
    states: state && [isOutcome ? "done" : state],
    outcome: isOutcome ? state : "",
    eventType: text("type"),
    messageId: text("message"),
    externalReference: text("reference"),
    peer: text("peer"),
    errorCode: text("error"),
    late: late && late === "yes",
    conflict: conflict && conflict === "yes",
    acceptedFrom: from && Date.parse(from),
    acceptedTo: to && Date.parse(to) + LAST_OF_MINUTE_MS,
  };
  // What is not given is empty or undefined, a date that is none NaN; but "no" is an answer.
  return Object.fromEntries(Object.entries(query).filter(([, value]) => value || value === false));
}
