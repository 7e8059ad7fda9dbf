/** strace, which tells what a process asked of the kernel, and in which order; and deliveries to a receiver that runs under it. */
import { spawnSync } from "node:child_process";
import { createReadStream } from "node:fs";
import { Agent } from "node:http";
import { createInterface } from "node:readline";
import { fixtures } from "../../src/tools/testing/index.ts";
import type { Ready } from "./child.ts";
import { Asked, compiled, type Started } from "./process.ts";
import type { Description } from "./receiving.ts";
import { deliveryOf, post, requestOf } from "./sender.ts";

const PARALLEL = 8;

/** Why strace cannot be used here; null when it can. Some containers have it and forbid what it does. */
export function straceIsMissing(): string | null {
  const { status, error } = spawnSync("strace", ["-f", "-o", "/dev/null", "true"]);
  if (error !== undefined) return `there is no strace (${error.message})`;
  return status === 0 ? null : "strace is not allowed to trace here";
}

export interface Tracing {
  /** System calls, separated by commas. */
  readonly calls: string;
  /** Further arguments of strace. */
  readonly more?: readonly string[];
  /** Where the calls are written. */
  readonly log: string;
}

/** How a process is started under strace. */
export function traced({ calls, more = [], log }: Tracing): Started {
  const options = ["-f", "-qq", "-e", `trace=${calls}`, "-e", "signal=none", ...more, "-o", log];
  return { execPath: "strace", execArgv: [...options, process.execPath] };
}

/** A receiver on SQLite whose calls are traced. */
export class TracedReceiver {
  readonly #process: Asked;
  readonly #agent = new Agent({ keepAlive: true, maxSockets: PARALLEL });
  readonly #port: number;

  private constructor(process: Asked, port: number) {
    this.#process = process;
    this.#port = port;
  }

  static async start(description: Description, tracing: Tracing): Promise<TracedReceiver> {
    const process = new Asked(compiled("child.js"), { writes: false, ...description }, {}, traced(tracing));
    return new TracedReceiver(process, (await process.ask<Ready>("open")).port);
  }

  /** Delivers the first events of messages, each known by its number, over eight connections. */
  async deliver(first: number, count: number): Promise<void> {
    const answers = Array.from({ length: count }, (_, index) => {
      const request = requestOf(deliveryOf(fixtures.queued({ messageId: markerOf(first + index) })));
      return post({ port: this.#port, agent: this.#agent }, request);
    });
    const refused = (await Promise.all(answers)).filter(({ status }) => status !== 200);
    if (refused.length > 0) throw new Error(`${refused.length} deliveries were answered with ${refused[0]?.status}.`);
  }

  async stop(): Promise<void> {
    this.#agent.destroy();
    await this.#process.stop();
  }
}

/** A message id that can be told from anything else in the bytes of a call. */
function markerOf(index: number): string {
  return `row-${String(index).padStart(5, "0")}`;
}

/** The calls of a log, without their process ids; what strace shows in two pieces ("unfinished", "resumed") is put together at its end. */
export async function* callsIn(log: string): AsyncGenerator<string> {
  const unfinished = new Map<string, string>();
  for await (const line of createInterface({ input: createReadStream(log, "latin1") })) {
    const end = line.indexOf(" ");
    const [pid, rest] = [line.slice(0, end), line.slice(end)];
    if (rest.endsWith("<unfinished ...>")) {
      unfinished.set(pid, rest.slice(0, -"<unfinished ...>".length));
      continue;
    }
    const resumed = /^\s*<\.\.\. \w+ resumed>(.*)/s.exec(rest);
    yield resumed === null ? rest : `${unfinished.get(pid) ?? ""}${resumed[1]}`;
  }
}
