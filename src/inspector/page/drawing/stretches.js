/** The handling of one event, attempt by attempt, up to how it ended. */

/** @typedef {{ kind: string, from: number, to: number, text: string }} Stretch */

/** @type {Readonly<Record<string, string>>} */
const WORDS = { late: "recorded", dead: "dead letter" };

/** @param {string} text */
export const cut = (text) => (text.length > 13 ? `${text.slice(0, 12)}…` : text);

/** In order, and none before it was handed out. @param {import("../../api.ts").DrawnEvent} event @param {number} now */
export function stretchesOf({ sequence, state, outcome, replayed, startedAt, finishedAt, attempts }, now) {
  /** @param {string} kind @param {number} from @param {number} to @param {string} [word] @returns {Stretch} */
  const stretch = (kind, from, to, word = WORDS[kind] ?? kind) => ({
    kind,
    from,
    to,
    text: `${sequence} ${cut(word)}`,
  });
  const all = attempts.map(({ at, durationMs, errorCode }, index) => {
    const from = Math.min(at, Math.max(startedAt ?? at, at - durationMs));
    const isLast = state === "dead" && index === attempts.length - 1;
    return isLast ? stretch("dead", from, at) : stretch("failed", from, at, errorCode);
  });
  // A replay keeps when it was handed out first, but not how that went.
  if (replayed && startedAt !== null && startedAt < (all[0]?.from ?? finishedAt ?? now)) {
    all.unshift(stretch("before", startedAt, startedAt, "handed out"));
  }
  const from = all.length > 0 ? null : startedAt;
  if (finishedAt === null) {
    if (from !== null || all.length > 0)
      all.push(stretch("open", from ?? now, now, from === null ? "tried again" : "in progress"));
  } else if (all.at(-1)?.kind !== "dead") {
    all.push(stretch(outcome ?? state, from ?? finishedAt, finishedAt));
  }
  return all;
}
