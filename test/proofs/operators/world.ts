/** Operators act on an inbox while its receiver works: on one event, on all, by erasure, copy and pruning. Then every event is judged. */
import { mkdtempSync, rmSync } from "node:fs";
import { join } from "node:path";
import { isDeepStrictEqual } from "node:util";
import {
  copyInbox,
  createReceiver,
  type EventSummary,
  type HandlerContext,
  openInbox,
  PermanentError,
  type SourcesReceiver,
} from "../../../src/index.ts";
import { silentLogger } from "../../../src/internal/logger.ts";
import { type SqliteDatabase, sqliteStore } from "../../../src/stores/sqlite.ts";
import { createFakeClock, incomingOf, seededRandom, shuffled } from "../../../src/tools/testing/index.ts";
import { MEMORY_DISK } from "../../support/memory-disk.ts";
import { breachesOf, breachLines, endOf, type HandledEffect, laneOf, ownOf, storedEventOf } from "../history.ts";
import { commitEffect, contentsOf, makeEffectTable } from "../inbox.ts";
import { sourcesFor } from "../sources.ts";
import {
  type Delivery,
  isForLater,
  keepingForLater,
  NAMES,
  newDeliveries,
  PEOPLE,
  type Person,
  requestOf,
} from "./deliveries.ts";
import { differencesOf, placesNaming } from "./tables.ts";

const MINUTE_MS = 60_000;
/** No row has it. */
const NOBODY = 1_000_000;
const DAY_MS = 24 * 60 * MINUTE_MS;
const GAP_WAIT_MS = 2 * MINUTE_MS;
/** Longer than a gap and than three attempts. */
const REST_MS = 5 * MINUTE_MS;

/** How often something was done. */
export type Counts = Record<"delivered" | "replayed" | "discarded" | "erased" | "copied" | "pruned", number>;

export interface Outcome {
  readonly problems: readonly string[];
  readonly counts: Counts;
}

export async function runWorld(seed: number): Promise<Outcome> {
  const folder = mkdtempSync(join(MEMORY_DISK, "oncehook-operators-"));
  const world = new World(folder, seed);
  try {
    await world.run();
    return world;
  } finally {
    await world.stop();
    rmSync(folder, { recursive: true, force: true });
  }
}

class World implements Outcome {
  readonly problems: string[] = [];
  readonly counts: Counts = { delivered: 0, replayed: 0, discarded: 0, erased: 0, copied: 0, pruned: 0 };
  readonly #clock = createFakeClock();
  readonly #random: () => number;
  readonly #folder: string;
  readonly #seed: number;
  readonly #deliveries: Delivery[] = [];
  readonly #acknowledged = new Set<string>();
  /** Identities, once for each replay. */
  readonly #replayed: string[] = [];
  /** Of the inbox that was copied. */
  #effectsBefore: readonly HandledEffect[] = [];
  #path: string;
  #receiver: SourcesReceiver<SqliteDatabase>;

  constructor(folder: string, seed: number) {
    this.#folder = folder;
    this.#seed = seed;
    this.#random = seededRandom(seed);
    this.#path = join(folder, "inbox.db");
    this.#receiver = this.#newReceiver();
  }

  async run(): Promise<void> {
    await this.#receiver.start();
    for (const delivery of this.#send("first")) {
      await this.#deliver(delivery);
      await this.#clock.advance(Math.floor(this.#random() * GAP_WAIT_MS * 0.1));
      if (this.#random() < 0.2) await this.#actOnOne();
    }
    await this.#rest();
    await this.#replayAll();
    await this.#actOnQuarantine();
    await this.#actOnNothing();
    await this.#erase(PEOPLE[this.#seed % PEOPLE.length] ?? PEOPLE[0]);
    for (const delivery of this.#send("second")) await this.#deliver(delivery);
    await this.#copy();
    await this.#rest();
    await this.#judge();
    await this.#prune();
  }

  async stop(): Promise<void> {
    const stopped = this.#receiver.stop({ timeoutMs: 0 });
    await this.#clock.advance(MINUTE_MS);
    await stopped;
  }

  #newReceiver(): SourcesReceiver<SqliteDatabase> {
    const receiver = createReceiver({
      ...{
        sources: sourcesFor(NAMES, { gapWait: () => GAP_WAIT_MS }),
        store: this.#store(),
        logger: silentLogger,
        maxAttempts: 3,
      },
      ...{ clock: this.#clock, random: this.#random, onDead: this.#seed % 2 === 0 ? "block" : "continue" },
    });
    const handle = (handler: "on" | "late") => (event: object, ctx: HandlerContext<SqliteDatabase>) => {
      const luck = ctx.replay ? 1 : this.#random();
      if (luck < 0.15) throw new Error("It is tried again.");
      if (luck < 0.3) throw new PermanentError("It is a dead letter.");
      commitEffect(ctx, "sqlite", ownOf(event, handler));
    };
    for (const name of NAMES) receiver.source(name).onAny(handle("on")).onLate(handle("late"));
    return receiver;
  }

  #store() {
    return keepingForLater(sqliteStore(this.#path, { onOpen: makeEffectTable, minFreeBytes: 0 }));
  }

  #send(round: string): readonly Delivery[] {
    const deliveries = newDeliveries(round, this.#clock.now(), this.#random);
    this.#deliveries.push(...deliveries);
    return deliveries;
  }

  async #deliver(delivery: Delivery): Promise<void> {
    const { source, identity } = delivery;
    const { status } = await this.#receiver.source(source).handle(incomingOf(requestOf(delivery, this.#clock.now())));
    if (status !== 200) this.problems.push(`${status} for a delivery of ${source}`);
    else if (identity !== "" && !isForLater(delivery)) this.#acknowledged.add(identity);
    this.counts.delivered += 1;
  }

  /** On any event, in whatever state it is by now. */
  async #actOnOne(): Promise<void> {
    const { inbox } = this.#receiver;
    const { items } = await inbox.find({ limit: 1_000 });
    const event = items[Math.floor(this.#random() * items.length)];
    if (event === undefined) return;
    if (this.#random() < 0.5) {
      if ((await inbox.replay(event.id)).ok) this.#countReplay(event);
    } else if ((await inbox.discard(event.id)).ok) {
      this.counts.discarded += 1;
      if (event.state === "done" || event.state === "late") this.problems.push(`discarded an event that had ended`);
    }
  }

  #countReplay(event: EventSummary): void {
    this.counts.replayed += 1;
    this.#replayed.push(storedEventOf(event).identity);
  }

  /** Two people at once, who want the same. A dead letter is replayed once, and where old news is left out only if nothing later was handled. */
  async #replayAll(): Promise<void> {
    const { inbox } = this.#receiver;
    const skipSuperseded = this.#seed % 3 === 0;
    const events = await this.#events();
    const isOldNews = ({ laneId, sequence }: EventSummary) =>
      events.some((other) => other.laneId === laneId && other.sequence > sequence && endOf(other) === "handled");
    const dead = events.filter(({ state }) => state === "dead");
    const wanted = dead.filter((event) => !(skipSuperseded && isOldNews(event)));
    const query = { states: ["dead"] as const };
    const both = ["one", "two"].map((by) => inbox.replayAll(query, { by, skipSuperseded }));
    const [one, two] = await Promise.all(both);
    const replayed = (one?.replayed ?? 0) + (two?.replayed ?? 0);
    for (const event of wanted) this.#countReplay(event);
    // A replay makes what comes before it old news.
    const isRight = skipSuperseded ? replayed <= wanted.length : replayed === wanted.length;
    if (!isRight) this.problems.push(`replayed: ${replayed} times, and ${wanted.length} dead letters were to be`);
    await this.#clock.advance(MINUTE_MS);
  }

  /** A body that is an event by now becomes one, once. */
  async #actOnQuarantine(): Promise<void> {
    const { inbox } = this.#receiver;
    const { items } = await inbox.findQuarantined({ limit: 1_000 });
    // The others are there when somebody is erased.
    for (const { id } of items.filter((row) => row.id % 2 === 0)) {
      const raw = (await inbox.quarantined(id))?.row.raw ?? null;
      const isEvent = raw !== null && Buffer.from(raw).includes('"eventType"');
      const acts = isEvent
        ? [inbox.replayQuarantined(id), inbox.replayQuarantined(id)]
        : [inbox.discardQuarantined(id)];
      const done = (await Promise.all(acts)).filter(({ ok }) => ok).length;
      if (done !== 1) this.problems.push(`acted on a quarantined body ${done} times`);
      if ((await inbox.discardQuarantined(id)).ok) this.problems.push("discarded a quarantined body a second time");
    }
  }

  async #actOnNothing(): Promise<void> {
    const { inbox } = this.#receiver;
    const acts = ["replay", "discard", "unblock", "releaseGap", "replayQuarantined", "discardQuarantined"] as const;
    for (const act of acts) {
      const reason = await inbox[act](NOBODY).then((result) => (result.ok ? "done" : result.reason), String);
      if (reason !== "not_found") this.problems.push(`${act} of what is not there: ${reason}`);
    }
  }

  async #events(): Promise<readonly EventSummary[]> {
    return (await this.#receiver.inbox.find({ order: "oldest", limit: 1_000 })).items;
  }

  /** What names the person goes, nothing of the others does, and a repeat is still known. */
  async #erase(person: Person): Promise<void> {
    const { inbox } = this.#receiver;
    const before = await this.#events();
    const texts = await inbox.bodies(before.map(({ id }) => id));
    const bodies = await this.#quarantinedOf(person);
    if ((await inbox.erase({ peer: person })).ok) this.counts.erased += 1;
    for (const place of placesNaming(this.#path, person)) this.problems.push(`erased, and still in ${place}`);
    const { others, own } = await this.#quarantinedOf(person);
    if (others !== bodies.others) this.problems.push("erased: a quarantined body of somebody else");
    if (own > 0) this.problems.push("erased, and still in a quarantined text");
    const after = new Map((await this.#events()).map((event) => [event.id, event]));
    for (const event of before) {
      const now = after.get(event.id);
      const raw = texts.get(event.id)?.raw;
      const isOthers = raw !== undefined && !Buffer.from(raw).includes(`"${person}"`);
      const name = `an event of somebody else, ${laneOf(event)} ${event.sequence}`;
      if (now === undefined) this.problems.push(`erased: the identity of ${laneOf(event)}`);
      else if (isOthers && !now.hasBody) this.problems.push(`erased: ${name}`);
      else if (isOthers && event.state !== "pending" && endOf(now) !== endOf(event))
        this.problems.push(`erased: ${name}, was ${endOf(event)} and is ${endOf(now)}`);
    }
    const known = this.#deliveries.filter((delivery) => delivery.person === person && delivery.identity !== "");
    for (const delivery of known) await this.#deliver(delivery);
  }

  /** How many quarantined bodies there are that name the person, and that do not. */
  async #quarantinedOf(person: Person): Promise<{ readonly own: number; readonly others: number }> {
    const { items } = await this.#receiver.inbox.findQuarantined({
      states: ["held", "replayed", "discarded"],
      limit: 1_000,
    });
    const found = await Promise.all(items.map(({ id }) => this.#receiver.inbox.quarantined(id)));
    const bodies = found.flatMap((one) => (one?.row.raw ? [Buffer.from(one.row.raw).toString()] : []));
    const names = (body: string) => body.includes(`"${person}"`) || body.startsWith(`${person},`);
    const own = bodies.filter(names).length;
    return { own, others: bodies.length - own };
  }

  /** The receiver goes on with the copy, and knows every delivery there. */
  async #copy(): Promise<void> {
    await this.stop();
    const [from, to] = [this.#path, join(this.#folder, "copy.db")];
    const [old, copy] = [this.#store(), sqliteStore(to, { minFreeBytes: 0 })];
    await copyInbox({ from: old, to: copy });
    this.counts.copied += 1;
    const { stored, effects } = contentsOf(from);
    if (!isDeepStrictEqual(stored, contentsOf(to).stored)) this.problems.push("copied: not the same events");
    for (const what of differencesOf(from, to)) this.problems.push(`copied: not the same ${what}`);
    this.#effectsBefore = effects;
    this.#path = to;
    this.#receiver = this.#newReceiver();
    await this.#receiver.start();
    for (const delivery of shuffled(this.#deliveries, this.#random)) await this.#deliver(delivery);
  }

  /** Whatever is parked goes on. */
  async #rest(): Promise<void> {
    const { inbox } = this.#receiver;
    await this.#clock.advance(REST_MS);
    for (let blocked = true; blocked; ) {
      const { items } = await inbox.findLanes({ statuses: ["blocked"], limit: 1_000 });
      for (const { id } of items) await inbox.unblock(id);
      await this.#clock.advance(MINUTE_MS);
      blocked = items.length > 0;
    }
  }

  async #judge(): Promise<void> {
    const { effects: since, stored } = contentsOf(this.#path);
    const effects = [...this.#effectsBefore, ...since];
    const { counters, gauges } = await this.#receiver.inbox.stats();
    // Each handler writes.
    if (counters.handled !== effects.length)
      this.problems.push(`counted: ${counters.handled} as handled, and ${effects.length} took effect`);
    if (gauges.pending !== 0) this.problems.push(`counted: ${gauges.pending} as pending, after a rest`);
    const breaches = breachesOf({
      ...{ sent: this.#deliveries.map(({ identity }) => identity), forged: [], acknowledged: this.#acknowledged },
      ...{ replayed: this.#replayed, effects },
      stored: stored.filter(({ state }) => state !== "quarantined"),
      ...{ moment: "ended", everyHandlerWrites: true },
    });
    this.problems.push(...breachLines(breaches));
  }

  /** Bodies of handled events go after 7 days, identities after 30, dead letters after 90. */
  async #prune(): Promise<void> {
    const before = await this.#events();
    const early = await this.#prunedAfter(5, before);
    const withBody = (events: readonly EventSummary[]) => events.filter(({ hasBody }) => hasBody).length;
    if (withBody(early) < withBody(before)) this.problems.push("pruned: a body of five days");
    const later = await this.#prunedAfter(5, before);
    if (later.length < before.length) this.problems.push("pruned: an identity of ten days");
    if (later.some((event) => endOf(event) === "handled" && event.hasBody))
      this.problems.push("not pruned: the body of an event that was handled ten days ago");
    const last = await this.#prunedAfter(25, before);
    const dead = before.filter(({ state }) => state === "dead").length;
    if (last.filter(({ state }) => state === "dead").length < dead) this.problems.push("pruned: a dead letter");
    if (last.length > dead) this.problems.push(`not pruned: ${last.length - dead} identities of 35 days`);
    this.counts.pruned += before.length - last.length;
  }

  /** With a delivery of that day, by which the inbox knows the time. @returns what is left of `events` */
  async #prunedAfter(days: number, events: readonly EventSummary[]): Promise<readonly EventSummary[]> {
    await this.stop();
    await this.#clock.advance(days * DAY_MS);
    this.#receiver = this.#newReceiver();
    await this.#receiver.start();
    await this.#deliver(this.#send(`after ${days}`)[0] as Delivery);
    await using inbox = await openInbox({ store: this.#store() as never, logger: silentLogger, clock: this.#clock });
    await inbox.prune();
    const known = new Set(events.map(({ id }) => id));
    return (await this.#events()).filter(({ id }) => known.has(id));
  }
}
