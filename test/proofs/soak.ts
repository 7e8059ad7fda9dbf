/** `npm run prove -- soak`: a receiver on SQLite under steady load for a minute (`--full` 30 minutes), which must not drift. */
import { statSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { MEMORY_DISK } from "../support/memory-disk.ts";
import type { Ready, Sample } from "./child.ts";
import { Asked, compiled, worker } from "./process.ts";
import { inFolder, missingFrom, type Programme, type Proof, sizeOf, type Terms } from "./programme.ts";
import type { Description } from "./receiving.ts";
import { driftOf, isDrift, type Point, type Tolerance } from "./soak-drift.ts";
import { DAY_MS, Operator, RETENTION, TOLERANCE } from "./soak-operator.ts";
import { type Orders, type Sent, send } from "./soak-sender.ts";

const SIZES = { short: { days: 10, load: { dayMs: 3_800 } }, full: { days: 60, load: { dayMs: 29_000 } } };
const LEAKING = { days: 8, load: 1_500 };
/** Of the deliveries that were to be sent; where even that was not reached, the load was not what was said. */
const LEAST_REACHED = 0.5;
const MIB = 1024 * 1024;
/** Enough to fill the caches, too. */
const CAPACITY_COUNT = 6_000;
const SHARE_OF_CAPACITY = 0.6;
/** Below it the machine, not the receiver, says how much load there is. */
const LEAST_PER_SECOND = 50;

/** What is looked at after each day. */
type Measure = "heap" | "rss" | "descriptors" | "delay" | "log" | "file" | "rows" | "backlog";

/** What may grow by how much over the steady part, and in what unit; timers and other programs make the last two restless. */
const TOLERANCES: Readonly<Record<Measure, Tolerance & { readonly unit: string }>> = {
  heap: { share: 0.1, least: 5, unit: "MiB" },
  rss: { share: 0.15, least: 24, unit: "MiB" },
  descriptors: { share: 0, least: 3, unit: "" },
  log: { share: 0.2, least: 8, unit: "MiB" },
  file: { share: 0.15, least: 4, unit: "MiB" },
  rows: { share: 0.2, least: 500, unit: "" },
  delay: { share: 1, least: 100, unit: "ms" },
  backlog: { share: 1, least: 300, unit: "" },
};

interface Plan {
  readonly days: number;
  /** At 60 % of what was measured; a number: so many deliveries a day, as quickly as they are answered. */
  readonly load: { readonly dayMs: number } | number;
  /** The control: the server keeps every event that it handles, and its body. */
  readonly leaks: boolean;
}

interface Outcome {
  readonly capacity: number;
  /** What was sent for, and what was reached. */
  readonly perSecond: number;
  readonly reached: number;
  readonly acknowledged: number;
  readonly refused: number;
  readonly dead: number;
  readonly replayed: number;
  readonly pruned: number;
  readonly series: ReadonlyMap<Measure, readonly Point[]>;
  readonly problems: readonly string[];
}

export const steadyLoad: Programme = {
  name: "soak",
  what: "under steady load, with poison and forgeries, nothing drifts: heap, descriptors, log, file, rows, delay, backlog",
  needsQuiet: true,
  async run(terms: Terms): Promise<Proof> {
    const outcome = await soak({ ...sizeOf(terms, SIZES), leaks: false });
    for (const line of linesOf(outcome)) terms.say(line);
    const problems = [
      ...outcome.problems,
      ...idleness(outcome),
      ...drifts(outcome).map((measure) => `${measure} drifts`),
    ];
    const leaking = await soak({ ...LEAKING, leaks: true });
    const seen = drifts(leaking);
    const words = seen.map((measure) => `${measure} drifts`).join(", ") || "no drift";
    terms.say(`a server that keeps each body: ${words}`);
    problems.push(...leaking.problems.map((problem) => `leaking: ${problem}`));
    problems.push(...missingFrom({ "a server that keeps each body was not seen to grow": seen.includes("heap") }));
    return { count: outcome.acknowledged, unit: "acknowledged events", problems };
  },
};

function drifts({ series }: Outcome): readonly Measure[] {
  return [...series].flatMap(([measure, points]) => (isDrift(driftOf(points, TOLERANCES[measure])) ? [measure] : []));
}

/** What was not there cannot have shown anything. */
function idleness({ refused, dead, replayed, pruned, perSecond, reached }: Outcome): string[] {
  return missingFrom({
    "no forged delivery was refused": refused > 0,
    "no event ended as a dead letter": dead > 0,
    "nothing was replayed": replayed > 0,
    "nothing was pruned": pruned > 0,
    [`only ${reached.toFixed(0)} deliveries a second were sent, of ${perSecond}`]: reached >= LEAST_REACHED * perSecond,
  });
}

function linesOf(outcome: Outcome): string[] {
  const { capacity, perSecond, reached, acknowledged, refused, dead, replayed, pruned, series } = outcome;
  const load = `${capacity.toFixed(0)} a second at most, ${perSecond} wished, ${reached.toFixed(0)} reached`;
  const counts = `${acknowledged} acknowledged, ${refused} forged refused, ${dead} dead, ${replayed} replayed, ${pruned} pruned`;
  const measures = [...series].map(([measure, points]) => {
    const { growth, allowed, median } = driftOf(points, TOLERANCES[measure]);
    const unit = TOLERANCES[measure].unit;
    const sign = growth < 0 ? "" : "+";
    return `  ${measure.padEnd(12)} ${median.toFixed(1)} ${unit} (${sign}${growth.toFixed(1)} over the steady part, ${allowed.toFixed(1)} allowed)`;
  });
  return [load, counts, ...measures];
}

/** Days of steady load on one inbox, with an operator at work; after each day everything must be at rest, and is looked at. */
function soak(plan: Plan): Promise<Outcome> {
  return inFolder(async (folder) => {
    const path = join(folder, "inbox.db");
    const description: Description = {
      ...{ place: { path }, clock: "ahead", receiver: { retention: RETENTION, maxAttempts: 3 } },
      toleranceMs: TOLERANCE,
      flaws: plan.leaks ? ["keeps_events"] : [],
    };
    const server = new Asked(compiled("child.js"), description);
    const sender = worker("soak-sender.js", send);
    try {
      const { port } = await server.ask<Ready>("open");
      const operator = await Operator.open(path);
      const outcome = await new Course({ server, sender, operator, port, path }).run(plan);
      await operator.close();
      const ends = [...(await sender.stop()), ...(await server.stop())];
      return { ...outcome, problems: [...outcome.problems, ...ends] };
    } finally {
      await Promise.all([server.kill(), sender.kill()]);
    }
  }, MEMORY_DISK);
}

interface Field {
  readonly server: Asked;
  readonly sender: Asked;
  readonly operator: Operator;
  readonly port: number;
  readonly path: string;
}

type Wish = Pick<Orders, "perSecond" | "count">;

class Course {
  readonly #field: Field;
  readonly #problems: string[] = [];
  readonly #series = new Map<Measure, Point[]>();
  readonly #startedAt = performance.now();
  #day = 0;
  #acknowledged = 0;
  #answered = 0;
  #sendingMs = 0;
  #refused = 0;

  constructor(field: Field) {
    this.#field = field;
  }

  async run({ days, load }: Plan): Promise<Outcome> {
    // By the second time the code is compiled.
    await this.#capacity();
    const capacity = await this.#capacity();
    const perSecond = Math.round(Math.max(LEAST_PER_SECOND, SHARE_OF_CAPACITY * capacity));
    [this.#answered, this.#sendingMs] = [0, 0];
    const wish =
      typeof load === "number"
        ? { perSecond: null, count: load }
        : { perSecond, count: Math.round((perSecond * load.dayMs) / 1_000) };
    for (let day = 0; day < days; day++) await this.#through(wish);
    const { dead, replayed, pruned } = this.#field.operator;
    const counts = { acknowledged: this.#acknowledged, refused: this.#refused, dead, replayed, pruned };
    const reached = this.#answered / (this.#sendingMs / 1_000);
    return { capacity, perSecond, reached, ...counts, series: this.#series, problems: this.#problems };
  }

  /** Deliveries a second that are accepted and handled, to the last one. */
  async #capacity(): Promise<number> {
    const { operator } = this.#field;
    const startedAt = performance.now();
    const sent = await this.#send({ perSecond: null, count: CAPACITY_COUNT });
    await operator.rest();
    const seconds = (performance.now() - startedAt) / 1_000;
    await operator.act();
    await operator.rest();
    await this.#endDay(sent);
    return sent.answered / seconds;
  }

  async #through(wish: Wish): Promise<void> {
    const { server, operator, path } = this.#field;
    const sending = this.#send(wish);
    await sleep(wish.perSecond === null ? 0 : (wish.count / wish.perSecond / 2) * 1_000);
    this.#note("backlog", await operator.backlog());
    await operator.act();
    const sent = await sending;
    await operator.rest();
    const { heap, rss, descriptors, delayMs } = await server.ask<Sample>("sample");
    const sizes = { file: statSync(path).size / MIB, log: statSync(`${path}-wal`).size / MIB, rows: operator.rows() };
    const seen = { heap, rss, descriptors, delay: delayMs, ...sizes };
    for (const [measure, value] of Object.entries(seen)) this.#note(measure as Measure, value);
    await this.#endDay(sent);
  }

  #send(wish: Wish): Promise<Sent> {
    const orders: Orders = { ...wish, port: this.#field.port, aheadMs: this.#day * DAY_MS, day: this.#day };
    return this.#field.sender.ask<Sent>("work", orders);
  }

  #note(measure: Measure, value: number): void {
    const points = this.#series.get(measure) ?? [];
    this.#series.set(measure, points);
    points.push([performance.now() - this.#startedAt, value]);
  }

  /** What a day must have come to; its events are gone after the next. */
  async #endDay(sent: Sent): Promise<void> {
    const { server, operator } = this.#field;
    const problems = [...sent.wrong.slice(0, 5), ...operator.check(sent)];
    this.#problems.push(...problems.map((problem) => `day ${this.#day}: ${problem}`));
    this.#acknowledged += sent.acknowledged.length;
    this.#answered += sent.answered;
    this.#sendingMs += sent.tookMs;
    this.#refused += sent.refused;
    this.#day += 1;
    await server.ask("advance", this.#day * DAY_MS);
    operator.advance(this.#day * DAY_MS);
  }
}
