import { statSync } from "node:fs";
import { describe, expect, it } from "vitest";
import type { InboxStore } from "../../src/inbox/store.ts";
import { sqliteStore } from "../../src/stores/sqlite.ts";
import { createFakeClock } from "../../src/testing/index.ts";
import { makePath, open } from "./sqlite-place.ts";
import { event, turn } from "./sqlite-turns.ts";

const BEAT_MS = 10_000;
const MINUTE_MS = 60_000;

async function acceptSome(store: InboxStore, round: number): Promise<void> {
  for (let message = 0; message < 100; message++) {
    await store.step(turn({ accepts: [event(`round-${round}-message-${message}`)] }) as never);
  }
}

describe("the log of an inbox on SQLite", () => {
  it("is emptied after a minute's rest, although the process says every 10 s that it lives", async () => {
    const path = makePath();
    const clock = createFakeClock();
    const store = await open(sqliteStore(path), { clock });
    const logBytes = () => statSync(`${path}-wal`).size;
    for (const round of [1, 2]) {
      await acceptSome(store, round);
      const grown = logBytes();
      for (let passed = 0; passed < 3 * MINUTE_MS; passed += BEAT_MS) {
        await clock.advance(BEAT_MS);
        await store.heartbeat({ keyringVersion: "1", counters: {} });
      }
      // What is left are the heartbeats since.
      expect(logBytes()).toBeLessThan(grown / 10);
    }
  });

  it("keeps its place while there is much to write, so that it need not grow again", async () => {
    const path = makePath();
    const clock = createFakeClock();
    const store = await open(sqliteStore(path), { clock });
    await acceptSome(store, 0);
    const grown = statSync(`${path}-wal`).size;
    for (let round = 1; round <= 5; round++) {
      await clock.advance(MINUTE_MS / 2);
      await acceptSome(store, round);
      expect(statSync(`${path}-wal`).size).toBeGreaterThanOrEqual(grown);
    }
  });
});
