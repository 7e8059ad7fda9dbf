/** One race after the other in one place, and what its inbox holds at the end. */
import { setTimeout as sleep } from "node:timers/promises";
import { eventIdentity, type InboxStore, openInbox } from "../../../src/index.ts";
import { silentLogger } from "../../../src/internal/logger.ts";
import { postgresStore } from "../../../src/stores/postgres.ts";
import { sqliteStore } from "../../../src/stores/sqlite.ts";
import { fixtures, seededRandom } from "../../../src/testing/index.ts";
import { type Bill, Bills, lateBills } from "../bills.ts";
import { type Breach, breachesOf } from "../history.ts";
import { contentsOn } from "../postgres-inbox.ts";
import { contentsOf } from "../sqlite-inbox.ts";
import { type RacePlace, Racers } from "./racers.ts";

/** Copies of an event that are under way at once. */
export const COPIES = 64;
/** Objects of Stripe. */
const LANES = 4;
const SEED = Number(process.env.SEED ?? 20_251_120);
const SETTLED_WITHIN_MS = 20_000;

export interface Race {
  readonly place: RacePlace;
  readonly processes: number;
  /** At least. */
  readonly events: number;
  readonly naive: boolean;
}

export interface Outcome {
  readonly breaches: readonly Breach[];
  readonly problems: readonly string[];
  /** Events that were sent. */
  readonly events: number;
  readonly late: ReturnType<typeof lateBills>;
  /** Deliveries that were told that theirs was the first. */
  readonly accepted: number;
  readonly duplicates: number;
}

export async function race({ place, processes, events, naive }: Race): Promise<Outcome> {
  const racers = await Racers.start(processes, { place, naive }, COPIES);
  const { sent, acknowledged, problems, accepted, duplicates } = await sendAll(racers, events);
  if (!naive) {
    // A faulty receiver keeps others from the file too; what it answered is worth more than that.
    await settled(place, acknowledged.size).catch((error: unknown) =>
      problems.push(`it cannot be looked at: ${String(error)}`),
    );
  }
  problems.push(...(await racers.stop()));
  const { effects, stored } = await (place.kind === "sqlite" ? contentsOf(place.path) : contentsOn(place));
  const breaches = breachesOf({
    ...{ sent, forged: [], acknowledged, replayed: [], effects },
    // The naive one keeps nothing but its effects.
    stored: naive ? sent.map((identity) => ({ ...rowOf(identity), state: "handled", attempts: 1 })) : stored,
    ...{ moment: "ended", everyHandlerWrites: true },
  });
  return { breaches, problems, events: sent.length, late: lateBills(effects), accepted, duplicates };
}

const rowOf = (identity: string) => ({ identity, messageId: "", sequence: 1 });

interface Sent extends Pick<Outcome, "accepted" | "duplicates"> {
  readonly sent: readonly string[];
  readonly acknowledged: ReadonlySet<string>;
  readonly problems: string[];
}

/** A message, the events of an object of Stripe at once, another message and so on; each event in all its copies at once. */
async function sendAll(racers: Racers, events: number): Promise<Sent> {
  const bills = new Bills(seededRandom(SEED), LANES);
  const sent: string[] = [];
  const acknowledged = new Set<string>();
  const problems: string[] = [];
  const outcomes = { accepted: 0, duplicates: 0 };
  const send = async ({ source, event, identity }: Racing) => {
    sent.push(identity);
    const answers = await racers.send(source, event, COPIES);
    const strange = answers.filter(({ status }) => status < 200 || status >= 300);
    problems.push(...strange.map(({ status }) => `event ${identity} was answered with ${status}`));
    if (strange.length < COPIES) acknowledged.add(identity);
    const count = (wanted: string) => answers.filter(({ outcome }) => outcome === wanted).length;
    outcomes.accepted += count("accepted") + count("late");
    outcomes.duplicates += count("duplicate");
  };
  while (sent.length < events) {
    await send(messageOf(sent.length));
    await Promise.all(bills.next().map(send));
  }
  return { sent, acknowledged, problems, ...outcomes };
}

type Racing = Pick<Bill, "event" | "identity"> & { readonly source: Bill["source"] | "messages" };

function messageOf(index: number): Racing {
  const event = fixtures.queued({ messageId: `msg_${index}`, occurredAt: Date.now() });
  return { source: "messages", event, identity: eventIdentity(event, Buffer.from(JSON.stringify(event))) };
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
