/** `npm run prove -- machines`: two processes on different ports share one Postgres inbox, through outages of everything and a rolling upgrade. */
import { setTimeout as sleep } from "node:timers/promises";
import { silentLogger } from "../../src/internal/logger.ts";
import { type Client, createClient } from "../../src/messaging/client/index.ts";
import { createEmulator, type Emulator, type FaultRule } from "../../src/messaging/emulator/index.ts";
import { TEST_SECRET } from "../../src/tools/testing/index.ts";
import { type PostgresServer, startPostgres } from "../stores/postgres/server.ts";
import { freePort } from "../support/free-port.ts";
import { DELIVERY_FAULTS, sendOne } from "./application.ts";
import { Look } from "./inbox.ts";
import { type Watched, watched } from "./ledger.ts";
import { ATTEMPT_TIMEOUT_MS, type Front, openFront } from "./machines-front.ts";
import { countsOf, findings, judge, type SkippedGap, type Verdict } from "./machines-judge.ts";
import { Asked, compiled } from "./process.ts";
import { missingFrom, type Programme, type Proof, sizeOf } from "./programme.ts";
import type { Description } from "./receiving.ts";
import { crossedIn, upgraded } from "./rolling.ts";

interface Size {
  readonly messages: number;
  /** Messages a second. */
  readonly pace: number;
  /** How much faster the service's time goes than the machines'. */
  readonly rate: number;
  /** Between two outages. */
  readonly calmMs: number;
}

/** The service's retries end after eight seconds, in the long form after sixteen, so that few outages outlast them, on a busy machine too. */
const SIZES = {
  short: { messages: 300, pace: 60, rate: 600, calmMs: 250 },
  full: { messages: 10_000, pace: 70, rate: 300, calmMs: 2_000 },
};
/** Events that are acknowledged between two replacements of a process. */
const BETWEEN = { short: 60, full: 2_000 };
/** A run in which the verdict must find something. */
const CARELESS: Size = { messages: 60, pace: 40, rate: 6_000, calmMs: 250 };

const MINUTE_MS = 60_000;
/** The shortest there is: a machine that vanished delays its messages by so much. */
const LEASE_MS = 1_000;
/** From the first attempt to the last retry, and a little. */
const ALL_ATTEMPTS_MS = 85 * MINUTE_MS;
const ATTEMPTS = 5;
/** Of the service's time, in which a message ends. */
const LIFE_MS = 15_000;
const DOWN_MS = 300;
const PAUSE_MS = LEASE_MS + 500;
const SETTLE_LIMIT_MS = 15_000;
/** What a handler takes: of quick ones, hundreds are taken ahead, and a machine that dies leaves them all to be taken over. */
const HANDLER_MS = 20;
/** How long a handler is waited for before a process is killed or paused outside of one. */
const HANDLER_LIMIT_MS = 1_000;

const MANY_FAULTS: readonly FaultRule[] = [
  ...DELIVERY_FAULTS,
  { match: { webhook: true }, action: { type: "drop" }, probability: 0.005 },
];

export const acrossMachines: Programme = {
  name: "machines",
  what: "two processes on different ports share a Postgres inbox: each event once and in order, through outages of everything and a rolling upgrade to a later schema",
  async run(terms): Promise<Proof> {
    const { say } = terms;
    const server = await startPostgres();
    const crossed = async (name: string, run: Omit<Run, "server" | "say">) => {
      const saying = (line: string) => say(`${name.padEnd(8)} ${line}`);
      const outcome = await crossMachines({ ...run, server, say: saying });
      saying(lineOf(outcome));
      return outcome;
    };
    try {
      const outcome = await crossed("machines", { ...sizeOf(terms, SIZES), outages: OUTAGES, isCareless: false });
      const careless = await crossed("careless", { ...CARELESS, outages: OUTAGES.slice(0, 2), isCareless: true });
      const upgrade = await upgraded(server.url, sizeOf(terms, BETWEEN), say);
      const problems = [
        ...[...findings(outcome), ...outcome.strangeEnds, ...shortcomings(outcome)],
        ...[...careless.strangeEnds, ...unseen(careless)].map((problem) => `careless: ${problem}`),
        ...upgrade.problems,
      ];
      return { count: outcome.events + upgrade.count, unit: "events", problems };
    } finally {
      await server.stop();
    }
  },
};

/** What must have happened for the outcome to say something. */
function shortcomings(outcome: Outcome): string[] {
  const { events, failedAttempts, neverArrived, byMachine, crossed, atBoth, takenOver, outages } = outcome;
  const handled = byMachine.reduce((sum, count) => sum + count, 0);
  return missingFrom({
    [`only ${handled} of ${events} events were handled, ${neverArrived} never arrived`]: handled > 0.9 * events,
    [`only ${failedAttempts} attempts failed`]: failedAttempts > events / 10,
    [`the machines handled ${byMachine.join(" and ")} events`]: Math.min(...byMachine) > 0.2 * handled,
    [`only ${crossed} messages were handled by both machines`]: crossed > 0,
    [`only ${atBoth} events reached both machines`]: atBoth > 0,
    [`only ${takenOver} events were taken over in ${outages} outages`]: takenOver > 0,
  });
}

function unseen({ breaches }: Outcome): string[] {
  const kinds = new Set(breaches.map(({ kind }) => kind));
  return missingFrom({
    "effects outside of ctx.commit were not seen twice": kinds.has("double"),
    "what was acknowledged and not stored was not seen missing": kinds.has("lost"),
  });
}

function lineOf(outcome: Outcome): string {
  const { events, attempts, failedAttempts, neverArrived, late, skippedGaps, outages } = outcome;
  const { byMachine, crossed, atBoth, takenOver } = outcome;
  const traffic = `${events} events, ${attempts} attempts (${failedAttempts} failed), ${neverArrived} never arrived, ${outages} outages`;
  const shares = `handled by machine ${byMachine.join(" and ")}, ${crossed} messages by both, ${atBoth} events at both, ${takenOver} taken over`;
  return `${traffic}; ${shares}; ${skippedGaps} gaps skipped, ${late} late: ${countsOf(outcome)}`;
}

type Named = Description & { readonly name: string };

/** A machine as its operator meets it: a process on a port of its own that is killed, paused and started again. */
export class Machine {
  readonly url: string;
  readonly #description: Named;
  readonly #ended: Asked[] = [];
  #process: Asked;

  private constructor(description: Named) {
    this.#description = description;
    this.url = `http://127.0.0.1:${description.port}/webhooks`;
    this.#process = new Asked(compiled("child.js"), description);
  }

  static async start(description: Named): Promise<Machine> {
    const machine = new Machine({ ...description, port: await freePort() });
    await machine.#process.ask("open");
    return machine;
  }

  get name(): string {
    return this.#description.name;
  }

  /** A line for each of its processes that ended otherwise than it was made to. */
  get strangeEnds(): readonly string[] {
    return [...this.#ended, this.#process].flatMap(({ strangeEnd }) =>
      strangeEnd === null ? [] : [`machine ${this.name} ${strangeEnd}`],
    );
  }

  /** As when it loses its power, in the middle of a handler; after `downMs` it starts again on the same port. */
  async crash(downMs: number): Promise<void> {
    await this.#inHandler();
    await this.#process.kill();
    await sleep(downMs);
    this.#ended.push(this.#process);
    this.#process = new Asked(compiled("child.js"), this.#description);
    await this.#process.ask("open");
  }

  /** Stands still in the middle of a handler, which goes on after `ms` as if nothing had been. */
  async pause(ms: number): Promise<void> {
    await this.#inHandler();
    this.#process.process.kill("SIGSTOP");
    await sleep(ms);
    this.#process.process.kill("SIGCONT");
  }

  /** Lets it end what it does. */
  stop(): Promise<unknown> {
    return this.#process.stop();
  }

  kill(): Promise<void> {
    return this.#process.kill();
  }

  /** Resolves when a handler has just begun and is held up for a moment, or when none began for too long. */
  async #inHandler(): Promise<void> {
    // One that has ended takes no question; its end is told at the end of the run.
    const begun = this.#process.ask("hold").catch(() => {});
    await Promise.race([begun, sleep(HANDLER_LIMIT_MS)]);
  }
}

interface Run extends Size {
  readonly server: PostgresServer;
  /** In turn, and again from the first one until all is sent. */
  readonly outages: readonly Outage[];
  /** Machines write outside of `ctx.commit`, and the front acknowledges what no machine has stored. Otherwise much goes wrong on the way. */
  readonly isCareless: boolean;
  say(line: string): void;
}

type Outage = (scene: Scene) => Promise<void>;

const OUTAGES: readonly Outage[] = [
  ({ machines }) => machines[0].crash(DOWN_MS),
  ({ machines }) => machines[1].pause(PAUSE_MS),
  (scene) => pointNumbers(scene, [...scene.machines].reverse()),
  ({ run }) => run.server.restart(),
  ({ machines }) => machines[1].crash(DOWN_MS),
];

interface Outcome extends Verdict {
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

/** A service, two machines and the front before them. */
interface Scene extends Watched {
  readonly run: Run;
  readonly gapWaitMs: number;
  readonly emulator: Emulator;
  readonly client: Client;
  readonly look: Look;
  readonly machines: readonly [Machine, Machine];
  readonly front: Front;
}

let inboxes = 0;

async function crossMachines(run: Run): Promise<Outcome> {
  const scene = await openScene(run);
  try {
    let isSending = true;
    const sending = sendAll(scene).finally(() => {
      isSending = false;
    });
    const [, outages] = await Promise.all([sending, strike(scene, () => isSending)]);
    await passTheRest(scene);
    await settled(scene.look, scene.gapWaitMs + SETTLE_LIMIT_MS);
    for (const machine of scene.machines) await machine.stop();
    return { ...(await outcomeOf(scene)), outages };
  } finally {
    await close(scene);
  }
}

async function openScene(run: Run): Promise<Scene> {
  const { server, rate, isCareless } = run;
  // An attempt that is timed out takes its time, however fast the service's goes.
  const gapWaitMs = ALL_ATTEMPTS_MS / rate + (ATTEMPTS - 1) * ATTEMPT_TIMEOUT_MS;
  const place = { url: server.url, schema: `machines_${process.pid}_${++inboxes}` };
  const look = new Look(place);
  await look.prepare();
  const description: Description = {
    ...{ place, gapWaitMs, handlerMs: HANDLER_MS, receiver: { leaseMs: LEASE_MS }, store: { maxConnections: 5 } },
    flaws: isCareless ? ["effect_outside_commit"] : [],
  };
  const [one, two] = [
    { ...description, name: "one" },
    { ...description, name: "two" },
  ] as const;
  const machines = await Promise.all([Machine.start(one), Machine.start(two)]);
  const front = await openFront({ machines, fails: !isCareless, isCareless });
  const emulator = await createEmulator({
    ...{ clock: `x${rate}`, seed: "machines", deliveryUrl: front.url, inboundUrl: front.url },
    ...{ webhookSecret: TEST_SECRET, attemptTimeoutMs: ATTEMPT_TIMEOUT_MS, logger: silentLogger },
    faults: isCareless ? [] : MANY_FAULTS,
  });
  const { clientId, clientSecret } = emulator;
  const client = createClient({ baseUrl: emulator.url, clientId, clientSecret, logger: silentLogger });
  const scene = { run, gapWaitMs, emulator, client, look, machines, front, ...watched(emulator) };
  await pointNumbers(scene, machines);
  return scene;
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
    const send = () => sendOne(client, number, senders[number % senders.length] ?? full);
    // A token lives for an hour of the service's time: a busy machine may take longer to use it.
    await send().catch((error) => (error.code === "UNAUTHORIZED" ? send() : Promise.reject(error)));
  }
}

/** Each outage at least once; resolves with how many there were. */
async function strike(scene: Scene, isSending: () => boolean): Promise<number> {
  const { outages, calmMs, say } = scene.run;
  let count = 0;
  while (isSending() || count < outages.length) {
    await sleep(calmMs);
    await outages[count % outages.length]?.(scene);
    count += 1;
    if (count % outages.length === 0) say(`${scene.events.length} events, ${count} outages`);
  }
  return count;
}

/** Until the service has nothing left to send. */
async function passTheRest({ emulator, deliveries }: Scene): Promise<void> {
  const end = emulator.clock.now() + LIFE_MS;
  const isPending = () => [...deliveries.values()].some(({ state }) => state === "pending");
  while (emulator.clock.now() < end || isPending()) await sleep(50);
}

/** Resolves when no event is pending, or when they have not become fewer for `limitMs`. */
async function settled(look: Look, limitMs: number): Promise<void> {
  let fewest = Number.POSITIVE_INFINITY;
  for (let since = performance.now(); performance.now() - since < limitMs; await sleep(50)) {
    const pending = await look.pending();
    if (pending === 0) return;
    if (pending < fewest) since = performance.now();
    fewest = Math.min(fewest, pending);
  }
}

async function outcomeOf(scene: Scene): Promise<Omit<Outcome, "outages">> {
  const { look, gapWaitMs, events, front, machines } = scene;
  const deliveries = [...scene.deliveries.values()];
  const { effects, stored } = await look.contents();
  const gaps = await look.rows<SkippedGap & Record<string, unknown>>(
    `select convert_from(l.name, 'UTF8') as lane, g.lo::int as "from", g.hi::int as "to",
      (select min(e.accepted) from {event} e where e.lane = g.lane and e.seq > g.hi)::float8 as "behindAt",
      g.skipped::float8 as "skippedAt" from {gap} g join {lane} l on l.id = g.lane`,
  );
  const busyLanes = await look.number("select count(*) from {lane} where status <> 0");
  const attempts = deliveries.flatMap((delivery) => delivery.attempts);
  return {
    ...judge({ events, deliveries, effects, stored, gaps, gapWaitMs, busyLanes }),
    events: events.length,
    attempts: attempts.length,
    failedAttempts: attempts.filter(({ status }) => status !== 200).length,
    neverArrived: events.length - stored.length,
    late: effects.filter(({ late }) => late).length,
    skippedGaps: gaps.length,
    takenOver: stored.filter((event) => event.attempts > 1).length,
    byMachine: machines.map(({ name }) => effects.filter(({ by }) => by === name).length),
    crossed: crossedIn(effects),
    atBoth: front.atBoth,
    strangeEnds: machines.flatMap(({ strangeEnds }) => strangeEnds),
  };
}

async function close({ emulator, front, machines, look }: Scene): Promise<void> {
  await emulator.close();
  await front.close();
  await Promise.all(machines.map((machine) => machine.kill()));
  await look.remove();
}
