/** One siege: a server, its attackers, the traffic that goes on beside them, and what was wrong in the end. */
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { MEMORY_DISK } from "../support/memory-disk.ts";
import { breachesOf, breachLines } from "./history.ts";
import { contentsOf } from "./inbox.ts";
import { Asked, compiled, worker } from "./process.ts";
import { inFolder, within } from "./programme.ts";
import { type Attempt, attackAll, type Orders } from "./slow-attacks.ts";
import {
  type Adapter,
  type Connected,
  type Flaw,
  HELD_AT_MOST,
  type Memory,
  type ServerOptions,
  type Sort,
} from "./slow-besieged.ts";
import { MODE_COUNT, SlowHttpTest } from "./slow-slowhttptest.ts";
import { Traffic } from "./slow-traffic.ts";

const CALM_MS = 1_000;
const LOOK_EVERY_MS = 100;
/** What is pending for longer than that after the last answer is not handled any more. */
const HANDLED_WITHIN_MS = 10_000;
/** Beside what is bounded: other programs of the machine, and timers that are late. */
const GRACE_MS = 2_000;
/**
 * MiB over idle: the budget of all bodies; bodies that were cut and are not yet collected, for V8 collects buffers when there
 * are some 64 MiB more; and what else a busy server takes.
 */
const MOST_MEMORY = 96 + 64 + 64;
/** KiB that an open connection takes beside its body. */
const CONNECTION_MEMORY = 32;
/** When a server that does nothing answers later than that, other programs have the processors, and times prove little. */
const BUSY_MS = 25;
const FOREIGN = "slowhttptest";
const FOREIGN_HELD_MS = 6_000;

export interface Plan {
  readonly adapter: Adapter;
  readonly flaw: Flaw;
  readonly count: Readonly<Record<Sort, number>>;
  /** Connections of slowhttptest in each of its modes; 0 where it is missing. */
  readonly foreign: number;
  readonly forMs: number;
  /** 99 of 100 deliveries are answered within, ms. */
  readonly mostP99Ms: number;
  /** Of a server that nobody attacks, which tells how busy the machine is. */
  readonly bystanderPort: number;
}

/** What may be found wrong. */
export type Shortcoming = "refused" | "late" | "memory" | "held" | "history" | "idle attackers";

export interface Outcome {
  readonly found: readonly { readonly kind: Shortcoming; readonly line: string }[];
  readonly delivered: number;
  readonly p99Ms: number;
  readonly bystanderP99Ms: number;
  readonly memory: Memory;
  readonly attempts: number;
  /** The longest of each sort, ms. */
  readonly held: ReadonlyMap<string, number>;
}

export function siege(plan: Plan): Promise<Outcome> {
  return inFolder(async (folder) => {
    const path = join(folder, "inbox.db");
    const { adapter, flaw } = plan;
    const options: ServerOptions = { adapter, path, flaw, bodies: "small" };
    const server = new Asked(compiled("slow-child.js"), options);
    try {
      return await besiege(plan, server, path);
    } finally {
      await server.kill();
    }
  }, MEMORY_DISK);
}

/** The attackers' process, whose end is the end of all their connections. */
export function attackers(): { besiege(orders: Orders): Promise<readonly Attempt[]>; end(): Promise<unknown> } {
  const process = worker("slow-attacks.js", attackAll);
  return { besiege: (orders) => process.ask<readonly Attempt[]>("work", orders), end: () => process.kill() };
}

async function besiege(plan: Plan, server: Asked, path: string): Promise<Outcome> {
  const port = await server.ask<number>("listen");
  const traffic = new Traffic(port);
  const elsewhere = new Traffic(plan.bystanderPort);
  await sleep(CALM_MS);
  await server.ask("idle");
  for (const { waits } of [traffic, elsewhere]) waits.length = 0;
  const foreign = new SlowHttpTest(port, plan.foreign, plan.forMs);
  const attacking = attackers();
  const attempts = await attacking.besiege({ port, count: plan.count, forMs: plan.forMs });
  await foreign.stop();
  const stillOpen = await letGo(server, traffic, plan);
  await Promise.all([traffic.finish(), elsewhere.finish()]);
  // What is still pending after its time will be missed in the inbox.
  await within(HANDLED_WITHIN_MS, async () => (await server.ask<number>("pending")) === 0, LOOK_EVERY_MS);

  const ended = await server.ask<Connected[]>("held");
  const memory = await server.ask<Memory>("memory");
  await attacking.end();
  const theirs = [...ended, ...stillOpen].filter(({ port: side }) => !traffic.ports.has(side));
  const held = longest(theirs, attempts);
  const strange = await server.stop();
  const times = { p99Ms: traffic.p99Ms, bystanderP99Ms: elsewhere.p99Ms };
  const found = [
    ...refusals(traffic),
    ...delays(times, plan.mostP99Ms),
    ...overuse(memory, plan),
    ...clingers(held, isBusy(times) ? mostPatience(plan) : 1),
    ...[...strange, ...missing(traffic, path)].map((line) => ({ kind: "history", line }) as const),
    ...idlers(plan, attempts),
  ];
  return { ...times, found, delivered: traffic.sender.acknowledged.size, memory, held, attempts: attempts.length };
}

/** How often the time for letting go is granted on a busy machine: a careless front must be seen to hold connections on any. */
const mostPatience = ({ flaw }: Plan) => (flaw === "none" ? 2 : 1);

/** Waits until the server has closed all connections but the traffic's, or should have, with all patience; those that it has not. */
async function letGo(server: Asked, traffic: Traffic, plan: Plan): Promise<readonly Connected[]> {
  const sorts = Object.entries(HELD_AT_MOST).filter(([sort]) => plan.count[sort as Sort] > 0);
  const longestBound = Math.max(...sorts.map(([, ms]) => ms)) + GRACE_MS;
  // What is let go of in twice the time is seen to be, and what is not is seen too.
  const deadline = performance.now() + mostPatience(plan) * longestBound;
  for (;;) {
    const open = (await server.ask<Connected[]>("open")).filter(({ port }) => !traffic.ports.has(port));
    if (open.length === 0 || performance.now() > deadline) return open;
    await sleep(LOOK_EVERY_MS);
  }
}

/** By the sort of attacker whose connection each is; what is nobody's is slowhttptest's. */
function longest(connections: readonly Connected[], attempts: readonly Attempt[]): ReadonlyMap<string, number> {
  const sorts = sortsOf(connections, attempts);
  const held = new Map<string, number>();
  for (const connection of connections) {
    const sort = sorts.get(nameOf(connection)) ?? FOREIGN;
    held.set(sort, Math.max(held.get(sort) ?? 0, connection.ms));
  }
  return held;
}

/** Each attempt is the connection from its port that is nearest in time: a busy server takes it seconds after the kernel did. */
function sortsOf(connections: readonly Connected[], attempts: readonly Attempt[]): ReadonlyMap<string, Sort> {
  const byPort = new Map<number, Connected[]>();
  for (const one of connections) byPort.set(one.port, [...(byPort.get(one.port) ?? []), one]);
  const sorts = new Map<string, Sort>();
  for (const { localPort, since, sort } of attempts) {
    const distance = (one: Connected) => Math.abs(one.since - since);
    const [nearest] = (byPort.get(localPort) ?? []).toSorted((a, b) => distance(a) - distance(b));
    if (nearest !== undefined) sorts.set(nameOf(nearest), sort);
  }
  return sorts;
}

/** The same for a connection that was still open and has ended since. */
const nameOf = ({ port, since }: Connected) => `${port} ${since}`;

function refusals({ sender }: Traffic): Outcome["found"] {
  const counts = new Map<number, number>();
  for (const { status } of sender.answers) counts.set(status, (counts.get(status) ?? 0) + 1);
  const others = [...counts].filter(([status]) => status < 200 || status >= 300);
  return others.map(([status, count]) => ({
    kind: "refused",
    line: `${count} signed deliveries were answered with ${status || "nothing"}`,
  }));
}

type Times = Pick<Outcome, "p99Ms" | "bystanderP99Ms">;

/** Whether the machine is too busy for times to be judged. */
export function isBusy({ bystanderP99Ms }: Pick<Times, "bystanderP99Ms">): boolean {
  return bystanderP99Ms > BUSY_MS;
}

function delays(times: Times, most: number): Outcome["found"] {
  const line = `one delivery in 100 waited for ${times.p99Ms.toFixed(0)} ms, of ${most}`;
  return isBusy(times) || times.p99Ms <= most ? [] : [{ kind: "late", line }];
}

function overuse({ idle, peak }: Memory, { count, foreign }: Plan): Outcome["found"] {
  const connections = Object.values(count).reduce((sum, size) => sum + size, MODE_COUNT * foreign);
  const most = MOST_MEMORY + (connections * CONNECTION_MEMORY) / 1_024;
  const line = `the server took ${peak - idle} MiB over idle, of ${most.toFixed(0)}`;
  return peak - idle <= most ? [] : [{ kind: "memory", line }];
}

function clingers(held: ReadonlyMap<string, number>, patience: number): Outcome["found"] {
  const bounds: Readonly<Record<string, number>> = { ...HELD_AT_MOST, [FOREIGN]: FOREIGN_HELD_MS };
  return [...held].flatMap(([sort, ms]) => {
    const most = patience * ((bounds[sort] ?? 0) + GRACE_MS);
    const line = `a ${sort} held its connection for ${(ms / 1_000).toFixed(1)} s, of ${(most / 1_000).toFixed(1)}`;
    return ms <= most ? [] : [{ kind: "held", line } as const];
  });
}

function missing({ sender: { sent, acknowledged } }: Traffic, path: string): readonly string[] {
  const { effects, stored, integrity } = contentsOf(path);
  const known = { sent, forged: [], acknowledged, replayed: [], effects, stored };
  const breaches = breachesOf({ ...known, moment: "ended", everyHandlerWrites: true });
  return [...breachLines(breaches), ...(integrity === "ok" ? [] : [`the file is damaged: ${integrity}`])];
}

/** Attackers that were not there would be no danger. */
function idlers({ count }: Plan, attempts: readonly Attempt[]): Outcome["found"] {
  return Object.entries(count).flatMap(([sort, wanted]) => {
    const came = attempts.filter((attempt) => attempt.sort === sort).length;
    return came >= wanted ? [] : [{ kind: "idle attackers", line: `of ${wanted} times ${sort} came ${came}` } as const];
  });
}
