/** The order in which what has ended goes. */
import { expect, it } from "vitest";
import { EndedQueue, type Ending } from "../../src/emulator/state/keeper.ts";

it("the oldest by creation of those that have ended, through ends, returns and removals", () => {
  const queue = new EndedQueue<Ending>();
  const all: Ending[] = [];
  const ended = new Set<Ending>();
  // A walk through 5,000 changes that repeats: creations, ends, returns, and removals of the oldest.
  for (let i = 0, seed = 7; i < 5_000; i++) {
    seed = (seed * 48_271) % 2_147_483_647;
    const item = all[seed % Math.max(1, all.length)];
    if (item === undefined || seed % 4 === 0) {
      all.push({ createdAt: seed % 30, place: i, hasEnded: false, isQueued: false });
    } else if (seed % 4 === 1 && ended.has(item)) {
      queue.set(item, false);
      ended.delete(item);
    } else {
      queue.set(item, true);
      ended.add(item);
    }
    const oldest = [...ended].sort((a, b) => a.createdAt - b.createdAt || a.place - b.place)[0];
    expect(queue.oldest()).toBe(oldest);
    expect(queue.size).toBe(ended.size);
    if (i % 10 !== 0 || oldest === undefined) continue;
    queue.set(oldest, false);
    ended.delete(oldest);
    all.splice(all.indexOf(oldest), 1);
  }
});
