/** What the filters of the live list mean: the address' words in, the API's query out. */

/** Seven digits and more, also grouped, may be somebody's number: it stays in memory, and the address has its place there. */
const NUMBER = /\d(?:[\s().-]{0,3}\d){6,}/;
const LAST_OF_MINUTE_MS = 59_999;
const OUTCOMES = ["handled", "unhandled"];

/** @type {string[]} */
const kept = [];

/** @param {string} name @param {string} text @returns {string} what may stand in the address for it */
export function toAddress(name, text) {
  const isPrivate = name === "peer" || (["message", "reference"].includes(name) && NUMBER.test(text));
  if (text === "" || !isPrivate) return text;
  if (!kept.includes(text)) kept.push(text);
  return `*${kept.indexOf(text)}`;
}

/** @param {string} text @returns {string} empty for what another page kept */
export function fromAddress(text) {
  return /^\*\d+$/.test(text) ? (kept[Number(text.slice(1))] ?? "") : text;
}

/**
 * An `EventQuery` without page and limit.
 *
 * @param {Readonly<Record<string, string>>} params those of the address
 * @returns {Record<string, unknown>}
 */
export function queryOf(params) {
  const { state = "", type, message, reference, peer, error, from, to, late, conflict } = params;
  const isOutcome = OUTCOMES.includes(state);
  const query = {
    states: state === "" ? "" : [isOutcome ? "done" : state],
    outcome: isOutcome ? state : "",
    eventType: type,
    messageId: message,
    externalReference: reference,
    peer,
    errorCode: error,
    late: late && late === "yes",
    conflict: conflict && conflict === "yes",
    acceptedFrom: from && Date.parse(from),
    acceptedTo: to && Date.parse(to) + LAST_OF_MINUTE_MS,
  };
  const given = Object.entries(query).filter(([, value]) => value !== undefined && value !== "");
  return Object.fromEntries(
    given.map(([name, value]) => [name, typeof value === "string" ? fromAddress(value) : value]),
  );
}
