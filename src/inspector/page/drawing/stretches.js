/** The handling of one event, attempt by attempt, up to how it ended. */

/** @typedef {{ kind: string, from: number, to: number, text: string }} Stretch */

const LONGEST = 13;

/** @type {Readonly<Record<string, string>>} */
const WORDS = { late: "recorded", dead: "dead letter" };

/** @param {string} text */
export const cut = (text) => (text.length > LONGEST ? `${text.slice(0, LONGEST - 1)}…` : text);

/** In order, and none before it was handed out. @param {import("../../api.ts").DrawnEvent} event @param {number} now @returns {Stretch[]} */
export function stretchesOf({ sequence, state, outcome, replayed, startedAt, finishedAt, attempts }, now) {
  /** @param {string} kind @param {number} from @param {number} to @param {string} [word] */
  const stretch = (kind, from, to, word = WORDS[kind] ?? kind) => ({
    kind,
    from,
    to,
    text: `${sequence} ${cut(word)}`,
  });
  const begun = startedAt ?? -Infinity;
  const all = attempts.map(({ at, durationMs, errorCode }) =>
    stretch("failed", Math.min(at, Math.max(begun, at - durationMs)), at, errorCode),
  );
  const last = all.at(-1);
  // A replay keeps when it was handed out first, but not how that went.
  if (replayed && startedAt !== null && startedAt < (all[0]?.from ?? finishedAt ?? now)) {
    all.unshift(stretch("before", startedAt, startedAt, "handed out"));
  }
  if (state === "dead" && last) Object.assign(last, stretch("dead", last.from, last.to));
  else if (finishedAt !== null) {
    all.push(stretch(outcome ?? state, all.length > 0 || startedAt === null ? finishedAt : startedAt, finishedAt));
  } else if (last || replayed) all.push(stretch("open", now, now, "tried again"));
  else if (startedAt !== null) all.push(stretch("open", startedAt, now, "in progress"));
  return all;
}
