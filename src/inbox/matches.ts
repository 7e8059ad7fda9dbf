/** Finds the parts of a message that stand in other texts. The time is linear in the message and the texts, whatever is in them. */

/** A state of the message's suffix automaton: the parts that end at the same places of the message. */
interface State {
  /** Of the longest of them. */
  length: number;
  /** The state of the longest part that ends at more places than these. Null for the empty part. */
  link: State | null;
  readonly next: Map<number, State>;
  /** The longest part here that stands in a text, and the longest text that is a part here. 0 for none. */
  part: number;
  whole: number;
}

/** Lengths by the place in the message where a part ends, from 0 to the length of the message. 0 where none ends. */
export interface Matches {
  /** The longest part that stands in a text. */
  readonly parts: readonly number[];
  /** The longest text that is a part as a whole. */
  readonly wholes: readonly number[];
}

/** Returns a function that compares the message with texts. It may be called several times. */
export function matcherOf(message: string): (texts: Iterable<string>) => Matches {
  const root = stateOf(0, null);
  const states = [root];
  const ends = [root];
  for (let at = 0, last = root; at < message.length; at++) {
    last = extended(last, message.charCodeAt(at), states);
    ends.push(last);
  }
  states.sort((a, b) => a.length - b.length);
  return (texts) => {
    for (const state of states) state.part = state.whole = 0;
    for (const text of texts) follow(root, text);
    // If a part stands in a text, all of its ends do.
    for (const { part, link } of states.toReversed()) if (part > 0 && link !== null) link.part = link.length;
    for (const state of states) {
      state.part ||= state.link?.part ?? 0;
      state.whole ||= state.link?.whole ?? 0;
    }
    return { parts: ends.map(({ part }) => part), wholes: ends.map(({ whole }) => whole) };
  };
}

function stateOf(length: number, link: State | null, next = new Map<number, State>()): State {
  return { length, link, next, part: 0, whole: 0 };
}

/** Adds a character behind the part of `last`, which is all of the message so far. */
function extended(last: State, code: number, states: State[]): State {
  const state = stateOf(last.length + 1, states[0] ?? null);
  states.push(state);
  let from: State | null = last;
  for (; from !== null && !from.next.has(code); from = from.link) from.next.set(code, state);
  const to = from?.next.get(code);
  if (from === null || to === undefined) return state;
  if (to.length === from.length + 1) {
    state.link = to;
    return state;
  }
  // The shorter parts of `to` end here too, and the longer ones do not.
  const shorter = stateOf(from.length + 1, to.link, new Map(to.next));
  states.push(shorter);
  for (; from?.next.get(code) === to; from = from.link) from.next.set(code, shorter);
  to.link = shorter;
  state.link = shorter;
  return state;
}

/** Notes at each state how much of the text ends in it. */
function follow(root: State, text: string): void {
  let state = root;
  let length = 0;
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at);
    let to = state.next.get(code);
    while (to === undefined && state.link !== null) {
      state = state.link;
      length = state.length;
      to = state.next.get(code);
    }
    if (to === undefined) continue;
    state = to;
    length++;
    if (length > state.part) state.part = length;
  }
  if (length === text.length && length > state.whole) state.whole = length;
}
