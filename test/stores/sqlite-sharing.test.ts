import { statSync } from "node:fs";
import Database from "better-sqlite3";
import { describe, expect, it } from "vitest";
import type { InboxStore } from "../../src/inbox/store.ts";
import { sqliteStore } from "../../src/stores/sqlite.ts";
import { createFakeClock } from "../../src/tools/testing/fake-clock.ts";
import { connect, makePath, open } from "./sqlite-place.ts";
import { event, turn } from "./sqlite-turns.ts";

describe("a file that others use too", () => {
  it("waits a second for another connection's lock without blocking the event loop", async () => {
    const path = makePath();
    const store = await open(sqliteStore(path));
    const other = connect(path);
    other.exec("begin immediate");
    const start = performance.now();
    const rounds = [start];
    const timer = setInterval(() => rounds.push(performance.now()), 5);
    setTimeout(() => other.exec("commit"), 1_000);
    const { accepted } = await store.step(turn({ accepts: [event("m")] }));
    clearInterval(timer);
    const end = performance.now();
    const stalls = [...rounds, end].map((at, index) => at - (rounds[index - 1] ?? at));
    // A wait that blocks would last as long as the lock.
    expect(Math.max(...stalls)).toBeLessThan(500);
    expect(accepted).toMatchObject([{ outcome: "accepted" }]);
    expect(end - start).toBeGreaterThan(900);
  });

  it("has the write lock before it reads: what another connection writes meanwhile waits, and fails no batch (I2)", async () => {
    const path = makePath();
    const other = connect(path, { timeout: 0 });
    const others: unknown[] = [];
    const driver = class extends Database {
      override exec(text: string): this {
        super.exec(text);
        if (!text.startsWith("begin")) return this;
        try {
          others.push(other.exec("begin immediate; commit").open);
        } catch (error) {
          others.push((error as { readonly code?: unknown }).code);
        }
        return this;
      }
    };
    const store = await open(sqliteStore(path, { driver }));
    others.length = 0;
    const { accepted } = await store.step(turn({ accepts: [event("m")] }));
    expect(accepted).toMatchObject([{ outcome: "accepted" }]);
    expect(others.length).toBeGreaterThan(0);
    expect(new Set(others)).toEqual(new Set(["SQLITE_BUSY"]));
  });

  it("gives up on a lock that is held for too long, and nothing has happened", async () => {
    const path = makePath();
    const store = await open(sqliteStore(path, { busyTimeoutMs: 50 }));
    const other = connect(path);
    other.exec("begin immediate");
    const refused = { code: "store_unavailable", message: expect.stringContaining("locked") };
    await expect(store.step(turn({ accepts: [event("m")] }))).rejects.toMatchObject(refused);
    other.exec("commit");
    expect((await store.stats()).gauges.pending).toBe(0);
  });

  it("notices another process's commit within 100 ms, and no commit of its own", async () => {
    const path = makePath();
    const clock = createFakeClock();
    const [mine, theirs] = [await open(sqliteStore(path), { clock }), await open(sqliteStore(path))];
    let woken = 0;
    const stop = mine.onWake?.(() => woken++);
    await mine.step(turn({ accepts: [event("a")] }));
    await clock.advance(100);
    expect(woken).toBe(0);
    await theirs.step(turn({ accepts: [event("b")] }));
    await clock.advance(100);
    expect(woken).toBe(1);
    stop?.();
    await theirs.step(turn({ accepts: [event("c")] }));
    await clock.advance(1_000);
    expect(woken).toBe(1);
  });

  it("goes on after the last id, also when the newest events were pruned", async () => {
    const path = makePath();
    const clock = createFakeClock(Date.now());
    const store = await open(sqliteStore(path), { clock });
    const { leases } = await store.step(turn({ accepts: [event("a")], claim: { limit: 1 } }));
    const complete = { kind: "complete", outcome: "handled", effects: [] } as const;
    await store.step(turn({ settles: leases.map((lease) => ({ ...complete, lease })) }));
    await clock.advance(10_000);
    await store.step(turn({ accepts: [event("a", 1, { signedAt: clock.now() })] }));
    const ages = { handledBodiesMs: 1, otherBodiesMs: 1, identitiesMs: 1, deadMs: 1 };
    expect(await store.prune({ ...ages, batch: 10 })).toMatchObject({ events: 1, lanes: 1 });
    const again = await store.step(turn({ accepts: [event("a")] }));
    expect(again.accepted).toMatchObject([{ outcome: "accepted", event: 2, lane: 2 }]);
  });
});

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
