/** The filters of the event list: how the address keeps them, and the query that they make. */

/** Seven digits and more may be a phone number. It stays in memory, and the address holds its place there. */
const NUMBER = /\d(?:[\s().-]{0,3}\d){6,}/;
const TELEPHONE = /^\+?[\d\s().-]+$/;
const LAST_OF_MINUTE_MS = 59_999;

const kept: string[] = [];
/** Random for each page load, so that a place from an earlier load is not taken for one of this load. */
const PREFIX = `*${crypto.getRandomValues(new Uint32Array(1))[0]?.toString(36)}.`;

/** What the address may show of a filter. */
export function toAddress(name: string, text: string): string {
  const isPrivate = name === "peer" || (NUMBER.test(text) && (name === "reference" || TELEPHONE.test(text)));
  if (text === "" || !isPrivate) return text;
  if (!kept.includes(text)) kept.push(text);
  return `${PREFIX}${kept.indexOf(text)}`;
}

/** Empty for a number that an earlier page load kept. */
export function fromAddress(text: string): string {
  if (!/^\*[\w.]+$/.test(text)) return text;
  return text.startsWith(PREFIX) ? (kept[Number(text.slice(PREFIX.length))] ?? "") : "";
}

const OUTCOMES: readonly string[] = ["handled", "unhandled", "filtered"];

export type FilterTexts = Readonly<Record<string, string>>;

/**
 * An `EventQuery` without page and limit.
 *
 * @throws if a filter is a number that an earlier page load kept: without it, all events would match
 */
export function queryOf(params: FilterTexts): object {
  const { state, from, to, late, conflict } = params;
  const isOutcome = state !== undefined && OUTCOMES.includes(state);
  const query = {
    states: state && [isOutcome ? "done" : state],
    outcome: isOutcome ? state : "",
    source: textOf(params, "source"),
    tenant: textOf(params, "tenant"),
    lane: textOf(params, "lane"),
    id: textOf(params, "id"),
    eventType: textOf(params, "type"),
    externalReference: textOf(params, "reference"),
    peer: textOf(params, "peer"),
    errorCode: textOf(params, "error"),
    late: late && late === "yes",
    conflict: conflict && conflict === "yes",
    acceptedFrom: from && Date.parse(from),
    acceptedTo: to && Date.parse(to) + LAST_OF_MINUTE_MS,
  };
  // A missing filter is empty or undefined, and an invalid date is NaN. But "no" is an answer.
  return Object.fromEntries(Object.entries(query).filter(([, value]) => value || value === false));
}

function textOf(params: FilterTexts, name: string): string {
  const given = params[name] ?? "";
  const text = fromAddress(given);
  if (given !== "" && text === "")
    throw new Error("The number in this filter is not kept over a reload: write it again, or clear the filters.");
  return text;
}
