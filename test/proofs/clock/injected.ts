/** A receiver whose clock is given to it: days of deliveries in moments, with replays of old ones, and what is left at the end. */
import { mkdtempSync, rmSync } from "node:fs";
import { join } from "node:path";
import {
  createReceiver,
  eventIdentity,
  type InboxStore,
  type KnownEvent,
  PermanentError,
  type PrunePolicy,
  type Receiver,
} from "../../../src/index.ts";
import { silentLogger } from "../../../src/internal/logger.ts";
import { type SqliteDatabase, sqliteStore } from "../../../src/stores/sqlite.ts";
import {
  createFakeClock,
  type FakeClock,
  incomingOf,
  lifecycle,
  type SignedRequest,
  seededRandom,
  shuffled,
  signedRequest,
  TEST_SECRET,
} from "../../../src/testing/index.ts";
import { type Breach, breachesOf } from "../history.ts";
import { contentsOf, makeEffectTable, writeEffect } from "../sqlite-inbox.ts";
import { MEMORY_DISK } from "../../support/memory-disk.ts";
import type { Pattern } from "./patterns.ts";

const MINUTE_MS = 60_000;
const DAY_MS = 24 * 60 * MINUTE_MS;
/** For each setting of the clock. */
const MESSAGES = 12;
const SETTING_MS = 30 * MINUTE_MS;
/** A retry of the service comes so much later. */
const AGAIN_AFTER_MS = 5 * MINUTE_MS;
const MOST_AGAIN = 20;

export interface Outcome {
  readonly breaches: readonly Breach[];
  readonly problems: readonly string[];
  readonly acknowledged: number;
  /** Deliveries that came again: old ones with their own timestamps, or those that a wrong clock had refused. */
  readonly again: number;
}

/** @param prunesByWallClock - the planted fault */
export async function throughPattern(pattern: Pattern, seed: number, prunesByWallClock = false): Promise<Outcome> {
  const folder = mkdtempSync(join(MEMORY_DISK, "oncehook-clock-"));
  const path = join(folder, "inbox.db");
  const machine = new Machine(path, seed, prunesByWallClock);
  try {
    for (const aheadMs of [0, ...pattern.settings, 0, 0]) await machine.during(aheadMs);
    await machine.rest();
    const { effects, stored } = contentsOf(path);
    const { sent, acknowledged, strange, replays } = machine;
    const known = { sent, forged: [], acknowledged, replayed: [], effects, stored };
    const breaches = breachesOf({ ...known, moment: "ended", everyHandlerWrites: true });
    return { breaches, problems: strange, acknowledged: acknowledged.size, again: replays };
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

interface Delivery {
  readonly identity: string;
  readonly request: SignedRequest;
}

class Machine {
  #receiver: Receiver<SqliteDatabase>;
  readonly sent: string[] = [];
  readonly acknowledged = new Set<string>();
  readonly strange: string[] = [];
  replays = 0;
  readonly #clock: FakeClock = createFakeClock();
  readonly #random: () => number;
  readonly #path: string;
  readonly #prunesByWallClock: boolean;
  readonly #delivered: Delivery[] = [];
  readonly #waiting: KnownEvent[] = [];
  #aheadMs = 0;
  #messages = 0;
  #attempts = 0;

  constructor(path: string, seed: number, prunesByWallClock: boolean) {
    this.#random = seededRandom(seed);
    this.#path = path;
    this.#prunesByWallClock = prunesByWallClock;
    this.#receiver = this.#newReceiver();
  }

  /** As in a new process, which remembers nothing of what the last one was sent. */
  #newReceiver(): Receiver<SqliteDatabase> {
    const clock = { ...this.#clock, now: () => this.#clock.now() + this.#aheadMs };
    const store = sqliteStore(this.#path, { onOpen: makeEffectTable, minFreeBytes: 0 });
    const used: InboxStore<SqliteDatabase> = { ...store, onWake: () => () => {} };
    const receiver = createReceiver({
      ...{ secrets: TEST_SECRET, logger: silentLogger, clock, random: this.#random },
      store: this.#prunesByWallClock ? pruningByWallClock(used, () => this.#aheadMs) : used,
    });
    const handle: Parameters<typeof receiver.onAny>[0] = (_event, ctx) => {
      this.#attempts += 1;
      if (this.#attempts % 7 === 0) throw new Error("It is tried again.");
      if (this.#attempts % 11 === 0) throw new PermanentError("It is a dead letter.");
      ctx.commit((db) => writeEffect(db, ctx));
    };
    return receiver.onAny(handle).onLate(handle);
  }

  /** A setting of the clock, and a process that starts with it: new events, those that were refused before, and old deliveries again. */
  async during(aheadMs: number): Promise<void> {
    this.#aheadMs = aheadMs;
    await this.#receiver.start();
    const events = Array.from({ length: MESSAGES }, () =>
      lifecycle({ messageId: `msg_${++this.#messages}`, occurredAt: this.#clock.now() }),
    ).flat();
    for (const event of events) this.sent.push(identityOf(event));
    const due = shuffled([...this.#waiting.splice(0), ...events], this.#random);
    for (const event of due) {
      await this.#deliver(event);
      if (this.#random() < 0.3) await this.#replay();
      await this.#clock.advance(Math.floor(SETTING_MS / due.length));
    }
    await this.#stop();
    this.#receiver = this.#newReceiver();
  }

  /** The service's retries, while the clock is right again, and time for every gap; then what is past its retention goes. */
  async rest(): Promise<void> {
    this.#aheadMs = 0;
    await this.#receiver.start();
    for (let round = 0; this.#waiting.length > 0 && round < MOST_AGAIN; round++) {
      await this.#clock.advance(AGAIN_AFTER_MS);
      for (const event of this.#waiting.splice(0)) await this.#deliver(event);
    }
    if (this.#waiting.length > 0) this.strange.push(`${this.#waiting.length} events were never taken`);
    await this.#clock.advance(DAY_MS / 8);
    for (let index = 0; index < MESSAGES; index++) await this.#replay();
    await this.#clock.advance(MINUTE_MS);
    await this.#stop();
  }

  async #stop(): Promise<void> {
    const stopped = this.#receiver.stop({ timeoutMs: 0 });
    await this.#clock.advance(MINUTE_MS);
    await stopped;
  }

  async #deliver(event: KnownEvent): Promise<void> {
    const request = signedRequest(event, { timestamp: this.#clock.now() });
    const status = await this.#statusOf(request);
    const isWrong = Math.abs(this.#aheadMs) > MINUTE_MS;
    if (status === 200) {
      this.acknowledged.add(identityOf(event));
      this.#delivered.push({ identity: identityOf(event), request });
    } else {
      this.#waiting.push(event);
      // By a clock that is an hour fast, an honest timestamp is old but not too old.
      if (status !== 401 || !isWrong)
        this.strange.push(`${status} for a delivery while the clock is ${this.#aheadMs} ms ahead`);
    }
  }

  /** Somebody who recorded a delivery sends it again: whatever the answer, it has no effect. */
  async #replay(): Promise<void> {
    const old = this.#delivered[Math.floor(this.#random() * this.#delivered.length)];
    if (old === undefined) return;
    this.replays += 1;
    const status = await this.#statusOf(old.request);
    if (status !== 200 && status !== 401) this.strange.push(`${status} for a replayed delivery`);
  }

  async #statusOf(request: SignedRequest): Promise<number> {
    const answered = this.#receiver.handle(incomingOf(request));
    await this.#clock.advance(1);
    return (await answered).status;
  }
}

function identityOf(event: KnownEvent): string {
  return eventIdentity(event, Buffer.from(JSON.stringify(event)));
}

/** As if the cut-off were the wall clock's, and not the newest verified timestamp's. */
function pruningByWallClock(store: InboxStore<SqliteDatabase>, aheadMs: () => number): InboxStore<SqliteDatabase> {
  const sooner = ({ batch, ...ages }: PrunePolicy): PrunePolicy => {
    const by = Math.max(0, aheadMs());
    const { handledBodiesMs, otherBodiesMs, identitiesMs, deadMs } = ages;
    return {
      ...{ handledBodiesMs: handledBodiesMs - by, otherBodiesMs: otherBodiesMs - by, batch },
      ...{ identitiesMs: identitiesMs - by, deadMs: deadMs - by },
    };
  };
  return { ...store, prune: (policy) => store.prune(sooner(policy)) };
}
