/** One race after the other in one place, and what its inbox holds at the end. */
import { setTimeout as sleep } from "node:timers/promises";
import pg from "pg";
import { identityOf } from "../../src/inbox/lane-key.ts";
import { eventIdentity, type InboxStore, openInbox } from "../../src/index.ts";
import { silentLogger } from "../../src/internal/logger.ts";
import { postgresStore } from "../../src/stores/postgres.ts";
import { sqliteStore } from "../../src/stores/sqlite.ts";
import { fixtures } from "../../src/testing/index.ts";
import {
  type Breach,
  billIdentity,
  breachesOf,
  endOf,
  type HandledEffect,
  type StoredEvent,
} from "../prove/history.ts";
import { contentsOf } from "../prove/sqlite-inbox.ts";
import { type RacePlace, Racers } from "./racers.ts";

/** Copies of an event that are under way at once. */
export const COPIES = 64;
const PAGE = 1_000;
const SETTLED_WITHIN_MS = 20_000;

export interface Race {
  readonly place: RacePlace;
  readonly processes: number;
  readonly events: number;
  readonly naive: boolean;
}

export interface Outcome {
  readonly breaches: readonly Breach[];
  readonly problems: readonly string[];
  /** Deliveries that were told that theirs was the first. */
  readonly accepted: number;
  readonly duplicates: number;
}

export async function race({ place, processes, events, naive }: Race): Promise<Outcome> {
  const racers = await Racers.start(processes, { place, naive }, COPIES);
  const { sent, acknowledged, problems, accepted, duplicates } = await sendEach(racers, events);
  if (!naive) {
    // A faulty receiver keeps others from the file too; what it answered is worth more than that.
    await settled(place, acknowledged.size).catch((error: unknown) =>
      problems.push(`it cannot be looked at: ${String(error)}`),
    );
  }
  problems.push(...(await racers.stop()));
  const { effects, stored } = await held(place);
  const breaches = breachesOf({
    ...{ sent, forged: [], acknowledged, replayed: [], effects },
    // The naive one keeps nothing but its effects.
    stored: naive ? sent.map((identity) => ({ ...rowOf(identity), state: "handled", attempts: 1 })) : stored,
    ...{ moment: "ended", everyHandlerWrites: true },
  });
  return { breaches, problems, accepted, duplicates };
}

const rowOf = (identity: string) => ({ identity, messageId: "", sequence: 1 });

interface Sent extends Omit<Outcome, "breaches"> {
  readonly sent: readonly string[];
  readonly acknowledged: ReadonlySet<string>;
  readonly problems: string[];
}

/** One event after the other, each in all its copies at once. */
async function sendEach(racers: Racers, events: number): Promise<Sent> {
  const sent: string[] = [];
  const acknowledged = new Set<string>();
  const problems: string[] = [];
  const outcomes = { accepted: 0, duplicates: 0 };
  for (let index = 0; index < events; index++) {
    const { identity, answers } = await (index % 2 === 0 ? sendMessage(racers, index) : sendBill(racers, index));
    sent.push(identity);
    const strange = answers.filter(({ status }) => status < 200 || status >= 300);
    problems.push(...strange.map(({ status }) => `event ${index} was answered with ${status}`));
    if (strange.length < COPIES) acknowledged.add(identity);
    const count = (wanted: string) => answers.filter(({ outcome }) => outcome === wanted).length;
    outcomes.accepted += count("accepted");
    outcomes.duplicates += count("duplicate");
  }
  return { sent, acknowledged, problems, ...outcomes };
}

async function sendMessage(racers: Racers, index: number) {
  const event = fixtures.queued({ messageId: `msg_${index}`, occurredAt: Date.now() });
  const identity = eventIdentity(event, Buffer.from(JSON.stringify(event)));
  return { identity, answers: await racers.send("/messages", event, COPIES) };
}

/** An event of another source, in the same inbox. */
async function sendBill(racers: Racers, index: number) {
  const event = fixtures.stripe({ id: `evt_${index}` });
  return { identity: billIdentity(event.id, event.type), answers: await racers.send("/billing", event, COPIES) };
}

/** Handlers may still run when the last delivery is answered. */
async function settled(place: RacePlace, events: number): Promise<void> {
  const deadline = performance.now() + SETTLED_WITHIN_MS;
  const inbox = await openInbox({ store: storeAt(place), logger: silentLogger });
  while ((await inbox.stats()).counters.handled < events && performance.now() < deadline) await sleep(20);
  await inbox.close();
}

function storeAt(place: RacePlace): InboxStore<never> {
  const store = place.kind === "sqlite" ? sqliteStore(place.path) : postgresStore(place.url, { schema: place.schema });
  return store as unknown as InboxStore<never>;
}

interface Held {
  readonly effects: readonly HandledEffect[];
  readonly stored: readonly StoredEvent[];
}

async function held(place: RacePlace): Promise<Held> {
  if (place.kind === "sqlite") return contentsOf(place.path);
  const inbox = await openInbox({ store: storeAt(place), logger: silentLogger });
  const stored: StoredEvent[] = [];
  for (let after: number | null | undefined; after !== null; ) {
    const page = await inbox.find({ order: "oldest", limit: PAGE, ...(after === undefined ? {} : { after }) });
    for (const event of page.items) {
      const { lane, sequence, eventType, attempts } = event;
      const identity = identityOf(lane, sequence, eventType);
      stored.push({ identity, messageId: lane.messageId, sequence, attempts, state: endOf(event) });
    }
    after = page.next;
  }
  await inbox.close();
  const client = new pg.Client({ connectionString: place.url });
  await client.connect();
  try {
    const { rows } = await client.query<HandledEffect>(
      `select identity, message as "messageId", sequence, attempt, late, replay from ${place.schema}_effect order by id`,
    );
    return { effects: rows, stored };
  } finally {
    await client.end();
  }
}
