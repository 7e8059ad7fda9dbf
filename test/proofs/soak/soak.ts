/** One soak: days of steady load on one inbox, with an operator beside it; after each day everything must be at rest, and is looked at. */
import { mkdtempSync, rmSync, statSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { Asked } from "../asked.ts";
import { MEMORY_DISK } from "../../support/memory-disk.ts";
import { DAY_MS } from "./day.ts";
import type { Point } from "./drift.ts";
import { Operator } from "./operator.ts";
import type { Orders, Sample, Sent, ServerOptions } from "./subject.ts";

const MIB = 1024 * 1024;
/** Enough to fill the caches, too. */
const CAPACITY_COUNT = 6_000;
const SHARE_OF_CAPACITY = 0.6;
/** Below it the machine, not the receiver, says how much load there is. */
const LEAST_PER_SECOND = 50;

export interface Plan {
  readonly leaks: boolean;
  readonly days: number;
  /** At 60 % of what was measured; a number: so many deliveries a day, as quickly as they are answered. */
  readonly load: { readonly dayMs: number } | number;
}

/** What is looked at after each day. */
export type Measure = "heap" | "rss" | "descriptors" | "delay" | "log" | "file" | "rows" | "backlog";

export interface Outcome {
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

export async function soak(plan: Plan): Promise<Outcome> {
  const folder = mkdtempSync(join(MEMORY_DISK, "oncehook-soak-"));
  const path = join(folder, "inbox.db");
  const server = new Asked(program("child"), { path, leaks: plan.leaks } satisfies ServerOptions);
  const sender = new Asked(program("sender-child"), {});
  try {
    const port = await server.ask<number>("listen");
    const operator = await Operator.open(path);
    const course = new Course({ server, sender, operator, port, path });
    const outcome = await course.run(plan);
    await operator.close();
    const ends = [...(await sender.end()), ...(await server.end())];
    return { ...outcome, problems: [...outcome.problems, ...ends] };
  } finally {
    await Promise.all([server.kill(), sender.kill()]);
    rmSync(folder, { recursive: true, force: true });
  }
}

interface Field {
  readonly server: Asked;
  readonly sender: Asked;
  readonly operator: Operator;
  readonly port: number;
  readonly path: string;
}

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
    this.#check(sent);
    await this.#nextDay();
    return sent.answered / seconds;
  }

  async #through(wish: Pick<Orders, "perSecond" | "count">): Promise<void> {
    const { server, operator } = this.#field;
    const sending = this.#send(wish);
    await sleep(wish.perSecond === null ? 0 : (wish.count / wish.perSecond / 2) * 1_000);
    this.#note("backlog", await operator.backlog());
    await operator.act();
    const sent = await sending;
    await operator.rest();
    const { heap, rss, descriptors, delayMs } = await server.ask<Sample>("sample");
    const { path } = this.#field;
    const sizes = { file: statSync(path).size / MIB, log: statSync(`${path}-wal`).size / MIB, rows: operator.rows() };
    const seen = { heap, rss, descriptors, delay: delayMs, ...sizes };
    for (const [measure, value] of Object.entries(seen)) this.#note(measure as Measure, value);
    this.#check(sent);
    await this.#nextDay();
  }

  #send(wish: Pick<Orders, "perSecond" | "count">): Promise<Sent> {
    const orders: Orders = { ...wish, port: this.#field.port, aheadMs: this.#day * DAY_MS, day: this.#day };
    return this.#field.sender.ask<Sent>("send", orders);
  }

  #note(measure: Measure, value: number): void {
    const points = this.#series.get(measure) ?? [];
    this.#series.set(measure, points);
    points.push([performance.now() - this.#startedAt, value]);
  }

  /** What a day must have come to; its events are gone after the next. */
  #check(sent: Sent): void {
    const problems = [...sent.wrong.slice(0, 5), ...this.#field.operator.check(sent)];
    this.#problems.push(...problems.map((problem) => `day ${this.#day}: ${problem}`));
    this.#acknowledged += sent.acknowledged.length;
    this.#answered += sent.answered;
    this.#sendingMs += sent.tookMs;
    this.#refused += sent.refused;
  }

  async #nextDay(): Promise<void> {
    const { server, operator } = this.#field;
    this.#day += 1;
    await server.ask("advance", this.#day * DAY_MS);
    operator.advance(this.#day * DAY_MS);
  }
}

/** Beside this file, where it was compiled to. */
const program = (name: string) => fileURLToPath(new URL(`./${name}.js`, import.meta.url));
