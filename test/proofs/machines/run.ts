/** Messages from the service to machines that share an inbox, while machines and server go down in turn; and what came of them. */
import { setTimeout as sleep } from "node:timers/promises";
import { type Client, createClient } from "../../../src/client/index.ts";
import {
  createEmulator,
  type Delivery,
  type Emulator,
  type EventRecord,
  type FaultRule,
} from "../../../src/emulator/index.ts";
import { silentLogger } from "../../../src/internal/logger.ts";
import type { PostgresServer } from "../../postgres/server.ts";
import { type Front, openFront } from "./front.ts";
import { Machine } from "./machine.ts";
import { SharedInbox } from "./shared-inbox.ts";
import { ATTEMPT_TIMEOUT_MS, type Flaw, LEASE_MS, SECRET } from "./terms.ts";
import { type Accounts, judge, type Verdict } from "./verdict.ts";

export interface Run {
  readonly server: PostgresServer;
  readonly messages: number;
  /** Messages a second. */
  readonly pace: number;
  /** How much faster the service's time goes than the machines'. */
  readonly rate: number;
  /** In turn, and again from the first one until all is sent. */
  readonly outages: readonly Outage[];
  /** Between two of them. */
  readonly calmMs: number;
  readonly faults: "many" | "none";
  readonly flaws: readonly Flaw[];
  /** Prints a line of progress. */
  say(line: string): void;
}

export type Outage =
  | { readonly what: "crash" | "pause"; readonly machine: 0 | 1 }
  | { readonly what: "server" | "numbers change places" };

export interface Outcome extends Verdict {
  readonly events: number;
  readonly attempts: number;
  readonly failedAttempts: number;
  /** Events that the service dropped, or gave up, and no machine has: nothing arrived, so nothing is missing. */
  readonly neverArrived: number;
  readonly late: number;
  /** Gaps that were waited for in vain. */
  readonly skippedGaps: number;
  /** Events that were handed out again, because their first machine died or stood still in the handler. */
  readonly takenOver: number;
  /** Handled events by machine. */
  readonly byMachine: readonly number[];
  /** Messages with events of which each machine handled some. */
  readonly crossed: number;
  /** Events that both machines answered to. */
  readonly atBoth: number;
  readonly outages: number;
  /** Of machines that ended otherwise than they were made to, a line each. */
  readonly strangeEnds: readonly string[];
}

const MINUTE_MS = 60_000;
/** From the first attempt to the last retry, and a little. */
const ALL_ATTEMPTS_MS = 85 * MINUTE_MS;
const ATTEMPTS = 5;
/** Of the service's time, in which a message ends. */
const LIFE_MS = 15_000;
const DOWN_MS = 300;
const PAUSE_MS = LEASE_MS + 500;
const SETTLE_LIMIT_MS = 15_000;

const MANY_FAULTS: readonly FaultRule[] = [
  { match: { webhook: true }, action: { type: "duplicate" }, probability: 0.15 },
  { match: { webhook: true }, action: { type: "reorder" }, probability: 0.15 },
  { match: { webhook: true }, action: { type: "delay", ms: 2 * MINUTE_MS }, probability: 0.1 },
  { match: { webhook: true }, action: { type: "drop" }, probability: 0.005 },
];
/** Every tenth recipient is special: twice, reversed, failing in three ways, answering, 90 minutes late. */
const SPECIAL = ["05", "06", "01", "02", "03", "08", "07"].map((end) => `+150055500${end}`);

/** A service, two machines and the front before them. */
interface Scene {
  readonly run: Run;
  readonly gapWaitMs: number;
  readonly emulator: Emulator;
  readonly client: Client;
  readonly inbox: SharedInbox;
  readonly machines: readonly [Machine, Machine];
  readonly front: Front;
  /** What the service knows. */
  readonly events: readonly EventRecord[];
  readonly deliveries: ReadonlyMap<string, Delivery>;
}

export async function crossMachines(run: Run): Promise<Outcome> {
  const scene = await openScene(run);
  try {
    let isSending = true;
    const sending = sendAll(scene).finally(() => {
      isSending = false;
    });
    const [, outages] = await Promise.all([sending, strike(scene, () => isSending)]);
    await passTheRest(scene);
    await scene.inbox.settled(scene.gapWaitMs + SETTLE_LIMIT_MS);
    for (const machine of scene.machines) await machine.stop();
    return { ...(await outcomeOf(scene)), outages };
  } finally {
    await close(scene);
  }
}

async function openScene(run: Run): Promise<Scene> {
  const { server, rate, flaws } = run;
  // An attempt that is timed out takes its time, however fast the service's goes.
  const gapWaitMs = ALL_ATTEMPTS_MS / rate + (ATTEMPTS - 1) * ATTEMPT_TIMEOUT_MS;
  const inbox = await SharedInbox.create(server.url);
  const { url, schema } = inbox;
  const machines = await Promise.all([
    Machine.start({ name: "one", url, schema, gapWaitMs, flaws }),
    Machine.start({ name: "two", url, schema, gapWaitMs, flaws }),
  ]);
  const front = await openFront({ machines, fails: run.faults === "many", flaws });
  const emulator = await createEmulator({
    clock: `x${rate}`,
    seed: "machines",
    deliveryUrl: front.url,
    inboundUrl: front.url,
    webhookSecret: SECRET,
    attemptTimeoutMs: ATTEMPT_TIMEOUT_MS,
    faults: run.faults === "many" ? MANY_FAULTS : [],
    logger: silentLogger,
  });
  const { clientId, clientSecret } = emulator;
  const client = createClient({ baseUrl: emulator.url, clientId, clientSecret, logger: silentLogger });
  const scene = { run, gapWaitMs, emulator, client, inbox, machines, front, ...watched(emulator) };
  await pointNumbers(scene, machines);
  return scene;
}

function watched({ control }: Emulator): Pick<Scene, "events" | "deliveries"> {
  const events: EventRecord[] = [];
  const deliveries = new Map<string, Delivery>();
  control.watch((entry) => {
    if (entry.type === "event") events.push(entry.event);
    if (entry.type === "delivery") deliveries.set(entry.delivery.deliveryId, entry.delivery);
  });
  return { events, deliveries };
}

/** Two numbers' events go past the front, each to a machine of its own. */
async function pointNumbers({ client, emulator }: Scene, [first, second]: readonly Machine[]): Promise<void> {
  const { mmsOff, noCampaign } = emulator.fixtures.numbers;
  await client.numbers.update(mmsOff, { webhookDeliveryOverride: first?.url });
  await client.numbers.update(noCampaign, { campaignregId: "campaign", webhookDeliveryOverride: second?.url });
}

/** Half of the messages from the number without an override. */
async function sendAll({ run, client, emulator }: Scene): Promise<void> {
  const { full, mmsOff, noCampaign } = emulator.fixtures.numbers;
  const senders = [full, mmsOff, full, noCampaign] as const;
  const startedAt = performance.now();
  for (let number = 0; number < run.messages; number++) {
    await sleep(Math.max(0, startedAt + (number * 1_000) / run.pace - performance.now()));
    const special = number % 10 === 0 ? SPECIAL[(number / 10) % SPECIAL.length] : undefined;
    const to = special ?? "+14155550123";
    const sendFrom = senders[number % senders.length] ?? full;
    const message = { sendFrom, to: [to], messageType: "SMS", text: "hello" } as const;
    const sent = await client.messages.send({ ...message, externalReference: `order-${number}` });
    sent.throwIfRejected();
  }
}

/** Each outage at least once; resolves with how many there were. */
async function strike(scene: Scene, isSending: () => boolean): Promise<number> {
  const { outages, calmMs, say } = scene.run;
  let count = 0;
  while (isSending() || count < outages.length) {
    const outage = outages[count % outages.length];
    if (outage === undefined) break;
    await sleep(calmMs);
    await happen(outage, scene);
    count += 1;
    if (count % outages.length === 0) say(`${scene.events.length} events, ${count} outages`);
  }
  return count;
}

async function happen(outage: Outage, scene: Scene): Promise<void> {
  switch (outage.what) {
    case "crash":
      return scene.machines[outage.machine].crash(DOWN_MS);
    case "pause":
      return scene.machines[outage.machine].pause(PAUSE_MS);
    case "server":
      return scene.run.server.restart();
    case "numbers change places":
      return pointNumbers(scene, [...scene.machines].reverse());
    default:
      return outage satisfies never;
  }
}

/** Until the service has nothing left to send. */
async function passTheRest({ emulator, deliveries }: Scene): Promise<void> {
  const end = emulator.clock.now() + LIFE_MS;
  const isPending = () => [...deliveries.values()].some(({ state }) => state === "pending");
  while (emulator.clock.now() < end || isPending()) await sleep(50);
}

async function outcomeOf({
  inbox,
  gapWaitMs,
  events,
  deliveries,
  front,
  machines,
}: Scene): Promise<Omit<Outcome, "outages">> {
  const accounts: Accounts = {
    events,
    deliveries: [...deliveries.values()],
    history: await inbox.history(),
    stored: await inbox.stored(),
    gaps: await inbox.gaps(),
    gapWaitMs,
    busyLanes: await inbox.busyLanes(),
  };
  const attempts = accounts.deliveries.flatMap((delivery) => delivery.attempts);
  return {
    ...judge(accounts),
    events: events.length,
    attempts: attempts.length,
    failedAttempts: attempts.filter(({ status }) => status !== 200).length,
    neverArrived: events.length - accounts.stored.length,
    late: accounts.history.filter(({ late }) => late).length,
    skippedGaps: accounts.gaps.length,
    takenOver: accounts.stored.filter((event) => event.attempts > 1).length,
    byMachine: machines.map(({ name }) => accounts.history.filter(({ machine }) => machine === name).length),
    crossed: crossedIn(accounts),
    atBoth: front.atBoth,
    strangeEnds: machines.flatMap(({ strangeEnds }) => strangeEnds),
  };
}

function crossedIn({ history }: Accounts): number {
  const machinesOf = new Map<string | null, Set<string>>();
  for (const { message_id, machine } of history) {
    machinesOf.set(message_id, (machinesOf.get(message_id) ?? new Set()).add(machine));
  }
  return [...machinesOf.values()].filter(({ size }) => size > 1).length;
}

async function close({ emulator, front, machines, inbox }: Scene): Promise<void> {
  await emulator.close();
  await front.close();
  await Promise.all(machines.map((machine) => machine.kill()));
  await inbox.remove();
}
