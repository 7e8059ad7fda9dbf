/** Looks at every case from outside: what it throws, how long it keeps the processor, and whether the heap stays as it is. */
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";

/** Processor time that no case may take. */
const LONGEST_MS = 50;
/** What the heap may grow by between the second tenth of the cases and their end. */
const GROWTH_MIB = 8;
const SHOWN = 20;

setFlagsFromString("--expose-gc");
const collectGarbage: () => void = runInNewContext("gc");

export class Watch {
  readonly problems: string[] = [];
  /** How often each kind of case came. */
  readonly kinds = new Map<string, number>();
  cases = 0;
  slowestMs = 0;
  growthMib = 0;
  #found = 0;

  constructor() {
    process.on("uncaughtException", (error) => this.found(`uncaught: ${error.stack}`));
    process.on("unhandledRejection", (error) =>
      this.found(`unhandled: ${error instanceof Error ? error.stack : error}`),
    );
  }

  /** More than a few of a kind tell nothing more. */
  found(problem: string): void {
    this.#found += 1;
    if (this.problems.length < SHOWN) this.problems.push(problem);
    else this.problems[SHOWN] = `and ${this.#found - SHOWN} more`;
  }

  count(kind: string): void {
    this.cases += 1;
    this.kinds.set(kind, (this.kinds.get(kind) ?? 0) + 1);
  }

  /** Runs `work` on one case; undefined when it threw. */
  run<T>(name: string, work: () => T): T | undefined {
    const startedAt = performance.now();
    try {
      const result = work();
      const tookMs = performance.now() - startedAt;
      if (tookMs > LONGEST_MS) this.#lookAgain(name, work);
      else if (tookMs > this.slowestMs) this.slowestMs = tookMs;
      return result;
    } catch (error) {
      this.found(`${name} threw: ${error instanceof Error ? error.stack : String(error)}`);
      return undefined;
    }
  }

  /** A busy machine makes anything slow by the wall clock, so the processor's time counts, at its best of three. */
  #lookAgain(name: string, work: () => unknown): void {
    const times = [1, 2, 3].map(() => {
      const before = process.cpuUsage();
      work();
      const { user, system } = process.cpuUsage(before);
      return (user + system) / 1000;
    });
    const leastMs = Math.min(...times);
    this.slowestMs = Math.max(this.slowestMs, leastMs);
    if (leastMs > LONGEST_MS) this.found(`${name} took ${leastMs.toFixed(0)} ms`);
  }

  /** Calls `each` for every number from 0 on, and compares the heap after a fifth of them with that at the end. */
  async whole(what: string, count: number, each: (index: number) => unknown): Promise<void> {
    let before = 0;
    for (let index = 0; index < count; index++) {
      if (index === Math.floor(count / 5)) before = heapMib();
      const pending = each(index);
      if (pending instanceof Promise) await pending;
    }
    if (count > 0) this.grew(what, before);
  }

  /** The heap was `before` MiB large. */
  grew(what: string, before: number): void {
    const growth = heapMib() - before;
    this.growthMib = Math.max(this.growthMib, growth);
    if (growth > GROWTH_MIB) this.found(`heap: ${what} made it grow by ${growth.toFixed(1)} MiB`);
  }
}

/** What is in use once all that can be freed is. */
export function heapMib(): number {
  collectGarbage();
  collectGarbage();
  const { heapUsed, external } = process.memoryUsage();
  return (heapUsed + external) / 2 ** 20;
}
