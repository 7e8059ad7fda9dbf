/** `npm run prove -- race`: the same event 64 times at once, to one process, to four on a SQLite file and to three on Postgres. */
import { Agent } from "node:http";
import { join } from "node:path";
import { fixtures, seededRandom } from "../../src/tools/testing/index.ts";
import { MEMORY_DISK } from "../support/memory-disk.ts";
import { Bills, lateBills, lateLine } from "./bills.ts";
import type { Answered, Ready } from "./child.ts";
import { type Breach, breachCounts, breachesOf, breachLines } from "./history.ts";
import { Look, type Place } from "./inbox.ts";
import { Asked, compiled } from "./process.ts";
import { inFolder, type Programme, type Proof, seedOr, sizeOf, type Terms } from "./programme.ts";
import type { Description } from "./receiving.ts";
import { type Delivery, deliveryOf, post, requestOf } from "./sender.ts";
import { serverOrNot } from "./server.ts";

/** Of an event, under way at once. */
const COPIES = 64;
/** Objects of Stripe. */
const LANES = 4;
const SETTLED_WITHIN_MS = 20_000;
const EVENTS = { small: 20, short: 100, full: 1_000 };
const NAIVE = 20;

interface Outcome {
  readonly breaches: readonly Breach[];
  readonly problems: readonly string[];
  /** Events that were sent. */
  readonly events: number;
  readonly late: ReturnType<typeof lateBills>;
  /** Deliveries that were told that theirs was the first. */
  readonly accepted: number;
  readonly duplicates: number;
}

export const races: Programme = {
  name: "race",
  what: "an event that comes 64 times at once, to several processes, is one row and one effect, and every answer a 2xx",
  hasSmallForm: true,
  run: (terms) => inFolder((folder) => inEachPlace(folder, terms), MEMORY_DISK),
};

async function inEachPlace(folder: string, terms: Terms): Promise<Proof> {
  const { small, say } = terms;
  const events = sizeOf(terms, EVENTS);
  const onFile = (name: string) => ({ path: join(folder, `${name}.db`) });
  const problems: string[] = [];
  let count = 0;
  /** A race that cannot be run to its end is a problem like others: what was found before it is told too. */
  const tell = async (where: string, racing: Promise<Outcome>, problemsOf: (outcome: Outcome) => readonly string[]) => {
    try {
      const outcome = await racing;
      say(`${where.padEnd(22)} ${lineOf(outcome)}`);
      problems.push(...problemsOf(outcome).map((problem) => `${where}: ${problem}`));
      return outcome.accepted + outcome.duplicates;
    } catch (error) {
      problems.push(`${where}: it broke off: ${error instanceof Error ? error.message : String(error)}`);
      return 0;
    }
  };
  count += await tell("one process", race({ place: onFile("one"), processes: 1, events }), problemsOf);
  count += await tell("four on a SQLite file", race({ place: onFile("four"), processes: 4, events }), problemsOf);
  if (small) return { count, unit: "deliveries", problems };
  const server = await serverOrNot("three processes on Postgres", say);
  if (server !== null) {
    const place = { url: server.url, schema: "race" };
    count += await tell("three on Postgres", race({ place, processes: 3, events }), problemsOf);
    await server.stop();
  }
  // The control: a receiver that looks, and then inserts.
  const naive = race({ place: onFile("naive"), processes: 4, events: NAIVE, isNaive: true });
  const unseen = ({ breaches }: Outcome) =>
    breaches.some(({ kind }) => kind === "double") ? [] : ["check-then-insert was not seen to double"];
  await tell("naive", naive, unseen);
  return { count, unit: "deliveries", problems };
}

function problemsOf({ breaches, problems, events, accepted, duplicates }: Outcome): string[] {
  const found = [...breachLines(breaches), ...problems.slice(0, 20)];
  if (accepted !== events) found.push(`${accepted} deliveries of ${events} events were told to be the first`);
  if (duplicates !== events * (COPIES - 1)) found.push(`${duplicates} deliveries were told to be repeats`);
  return found;
}

function lineOf({ breaches, problems, late, accepted, duplicates }: Outcome): string {
  return `${accepted} accepted, ${lateLine(late)}, ${duplicates} repeats, ${problems.length} answers other than 2xx: ${breachCounts(breaches)}`;
}

interface Race {
  readonly place: Place;
  readonly processes: number;
  /** At least. */
  readonly events: number;
  readonly isNaive?: true;
}

/** One event after the other in one place, and what its inbox holds at the end. */
async function race({ place, processes, events, isNaive }: Race): Promise<Outcome> {
  const look = new Look(place);
  await look.prepare();
  const description: Description = {
    ...{ place, sources: ["messages", "billing", "held"], store: { maxConnections: 5 } },
    ...("path" in place && { driver: "accompanied" }),
    ...(isNaive && { flaws: ["check_then_insert"] }),
  };
  const children = Array.from({ length: processes }, () => new Asked(compiled("child.js"), description));
  try {
    const ports = (await Promise.all(children.map((child) => child.ask<Ready>("open")))).map(({ port }) => port);
    const { sent, acknowledged, problems, accepted, duplicates } = await sendAll(ports, events);
    // A faulty receiver keeps others from the file too; what it answered is worth more than that.
    if (!isNaive && !(await look.settled(SETTLED_WITHIN_MS, acknowledged.size)))
      problems.push("it cannot be looked at, or does not end");
    for (const child of children) problems.push(...(await child.stop()));
    const { effects, stored } = await look.contents();
    // The naive one keeps nothing but its effects.
    const rowOf = (identity: string) => ({ identity, lane: "", sequence: 1, state: "handled", attempts: 1 });
    const breaches = breachesOf({
      ...{ sent, forged: [], acknowledged, replayed: [], effects, stored: isNaive ? sent.map(rowOf) : stored },
      ...{ moment: "ended", everyHandlerWrites: true },
    });
    return { breaches, problems, events: sent.length, late: lateBills(effects), accepted, duplicates };
  } finally {
    await Promise.all(children.map((child) => child.kill()));
    await look.remove();
  }
}

/** A message, the events of an object of Stripe at once, another message and so on; each event in all its copies at once, to each process in turn. */
async function sendAll(ports: readonly number[], events: number) {
  const agents = ports.map(() => new Agent({ keepAlive: true, maxSockets: COPIES }));
  const bills = new Bills(seededRandom(seedOr(20_251_120)), LANES);
  const sent: string[] = [];
  const acknowledged = new Set<string>();
  const problems: string[] = [];
  const outcomes = { accepted: 0, duplicates: 0 };
  const send = async (delivery: Omit<Delivery, "copy" | "isForged">) => {
    const { identity, source } = delivery;
    sent.push(identity);
    const answers = await Promise.all(
      Array.from({ length: COPIES }, (_, copy): Promise<Answered> => {
        const process = copy % ports.length;
        const target = { port: ports[process] ?? 0, path: `/${source}`, agent: agents[process] ?? new Agent() };
        return post(target, requestOf({ ...delivery, copy, isForged: false }));
      }),
    );
    const strange = answers.filter(({ status }) => status < 200 || status >= 300);
    problems.push(...strange.map(({ status }) => `event ${identity} was answered with ${status}`));
    if (strange.length < COPIES) acknowledged.add(identity);
    const count = (wanted: string) => answers.filter(({ outcome }) => outcome === wanted).length;
    outcomes.accepted += count("accepted") + count("late");
    outcomes.duplicates += count("duplicate");
  };
  while (sent.length < events) {
    await send(deliveryOf(fixtures.queued({ messageId: `msg_${sent.length}`, occurredAt: Date.now() })));
    await Promise.all(bills.next().map(send));
  }
  for (const agent of agents) agent.destroy();
  return { sent, acknowledged, problems, ...outcomes };
}
