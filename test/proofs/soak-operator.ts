/** Whoever looks after the inbox, from a process of its own: replays, discards, prunes, waits for rest, and holds each day against what was sent. */
import { setTimeout as sleep } from "node:timers/promises";
import Database from "better-sqlite3";
import { type EventSummary, type Inbox, openInbox } from "../../src/index.ts";
import { systemClock } from "../../src/internal/clock.ts";
import { silentLogger } from "../../src/internal/logger.ts";
import { breachesOf, breachLines, storedEventOf } from "./history.ts";
import { contentsOf, storeAt } from "./inbox.ts";
import type { Sent } from "./soak-sender.ts";

const MINUTE_MS = 60_000;
export const TOLERANCE = { past: 5 * MINUTE_MS, future: MINUTE_MS } as const;
/** The shortest that the tolerance allows. */
const RETAINED_MS = 24 * 60 * MINUTE_MS + TOLERANCE.past + TOLERANCE.future;
export const RETENTION = {
  ...{ handledBodiesMs: RETAINED_MS, otherBodiesMs: RETAINED_MS },
  ...{ identitiesMs: RETAINED_MS, deadMs: RETAINED_MS },
} as const;
/**
 * From one day to the next: longer than a day of the test lasts beyond the retention. A soak's days are as long as a test has time for, but
 * a day apart by the clock, so that what is past its retention really goes.
 */
export const DAY_MS = RETAINED_MS + 60 * MINUTE_MS;
/** Of each sort that is acted on, once a day. */
const ACTS = 20;
const LOOK_EVERY_MS = 20;
const REST_WITHIN_MS = 30_000;
const TABLES = ["event", "lane", "body", "attempt", "gap", "audit"];

export class Operator {
  replayed = 0;
  pruned = 0;
  dead = 0;
  readonly #inbox: Inbox;
  readonly #clock: { aheadMs: number };
  readonly #path: string;
  /** Identities that were replayed today. */
  readonly #today: string[] = [];

  private constructor(inbox: Inbox, clock: { aheadMs: number }, path: string) {
    this.#inbox = inbox;
    this.#clock = clock;
    this.#path = path;
  }

  static async open(path: string): Promise<Operator> {
    const clock = { aheadMs: 0 };
    const now = () => Date.now() + clock.aheadMs;
    const inbox = await openInbox({ store: storeAt({ path }), logger: silentLogger, clock: { ...systemClock, now } });
    return new Operator(inbox, clock, path);
  }

  advance(aheadMs: number): void {
    this.#clock.aheadMs = aheadMs;
  }

  async backlog(): Promise<number> {
    return (await this.#inbox.stats()).gauges.pending;
  }

  /** What is past its retention goes; some that were handled and some dead letters are replayed, some dead letters discarded. */
  async act(): Promise<void> {
    await this.#dawn();
    // First, so that nothing of the day before is there to be acted on.
    const { events } = await this.#inbox.prune(RETENTION);
    this.pruned += events;
    const { items: done } = await this.#inbox.find({ states: ["done"], limit: ACTS });
    const { items: dead } = await this.#inbox.find({ states: ["dead"], limit: 2 * ACTS });
    for (const event of [...done, ...dead.filter((_, index) => index % 2 === 0)]) await this.#replay(event);
    for (const { id } of dead.filter((_, index) => index % 2 === 1)) await this.#inbox.discard(id);
  }

  /** Resolves when nothing is pending. @throws when that takes too long */
  async rest(): Promise<void> {
    const deadline = performance.now() + REST_WITHIN_MS;
    for (let pending = await this.backlog(); pending > 0; pending = await this.backlog()) {
      if (performance.now() > deadline)
        throw new Error(`${pending} events are still pending after ${REST_WITHIN_MS} ms.`);
      await sleep(LOOK_EVERY_MS);
    }
  }

  /** Of all tables of the inbox that grow with its events. */
  rows(): number {
    const counts = TABLES.map((table) => `(select count(*) from oncehook_${table})`).join(" + ");
    return this.#withFile((db) => Number(db.prepare(`select ${counts}`).pluck().get()));
  }

  /** Holds what is stored and in effect against what was sent today, and forgets the effects. */
  check({ sent, forged, acknowledged }: Sent): readonly string[] {
    const { effects, stored, integrity } = contentsOf(this.#path);
    const today = new Set(sent);
    const ofToday = stored.filter(({ identity }) => today.has(identity));
    const { length: before } = stored;
    const known = { sent, forged, acknowledged, replayed: this.#today.splice(0), effects, stored: ofToday };
    const problems = breachLines(breachesOf({ ...known, moment: "ended", everyHandlerWrites: true }));
    if (integrity !== "ok") problems.push(`the file is damaged: ${integrity}`);
    const unhandled = ofToday.filter(({ state }) => state === "unhandled").length;
    if (unhandled > 0) problems.push(`${unhandled} events ended as unhandled`);
    if (before > ofToday.length) problems.push(`${before - ofToday.length} events of the day before are still there`);
    this.dead += ofToday.filter(({ state }) => state === "dead").length;
    this.#withFile((db) => db.exec("delete from effect"));
    return problems;
  }

  close(): Promise<void> {
    return this.#inbox.close();
  }

  /** Resolves when a delivery of today is there: until then an inbox takes its clock for one that jumped ahead, and keeps everything. */
  async #dawn(): Promise<void> {
    const isToday = async () => {
      const { newestSignedAt } = await this.#inbox.stats();
      return newestSignedAt !== null && newestSignedAt > Date.now() + this.#clock.aheadMs - DAY_MS / 2;
    };
    while (!(await isToday())) await sleep(LOOK_EVERY_MS);
  }

  async #replay(event: EventSummary): Promise<void> {
    const { ok } = await this.#inbox.replay(event.id);
    if (!ok) return;
    this.replayed += 1;
    this.#today.push(storedEventOf(event).identity);
  }

  #withFile<T>(work: (db: InstanceType<typeof Database>) => T): T {
    const db = new Database(this.#path, { timeout: 5_000 });
    try {
      return work(db);
    } finally {
      db.close();
    }
  }
}
