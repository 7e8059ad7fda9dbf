/** Servers that take turns under the same load. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type Child, startChild } from "./child.ts";
import type { Sender } from "./deliveries.ts";
import type { LoadQuestion, LoadResult } from "./load.ts";
import type { Framework, Route, ServerQuestion } from "./server.ts";

export interface Served {
  readonly route: Route;
  readonly framework: Framework;
  /** A file that holds an inbox already, or the address of a server. Default: a new file. */
  readonly inbox?: string;
  /** Gets only so many of a round's requests, because it takes long for each. */
  readonly requests?: number;
}

export interface Rounds {
  readonly count: number;
  readonly requests: number;
  readonly lifecycles?: boolean;
  /** Requests are sent at this rate, rather than as fast as they are answered. */
  readonly perSecond?: number;
}

/** What one server did in each of its rounds. */
export interface Run {
  /** Requests a second. */
  readonly perSecond: number[];
  readonly p99Ms: number[];
  /** Events a second, from the first request until the last was handled; of routes that handle. */
  readonly handledPerSecond: number[];
  /** From the acceptance of an event to the commit of its end; `timed` only. */
  readonly waitP99Ms: number[];
  readonly delayP99Ms: number[];
  /** Microseconds of the server's processor time, for one request with all that follows from it. */
  readonly processor: number[];
  /** MiB that the server took before the first request. */
  readonly idleMemory: number;
  /** MiB that it took at its most. */
  memory: number;
  /** Exported so far, of `traced`. */
  spans: number;
}

interface Server {
  readonly served: Served;
  readonly port: number;
  readonly run: Run;
  ask(ask: ServerQuestion, count?: number): Promise<number>;
}

/** A directory for `use`, on the disk that TMPDIR names. */
export async function inDirectory<T>(use: (directory: string) => Promise<T>): Promise<T> {
  const directory = mkdtempSync(join(tmpdir(), "oncehook-bench-"));
  try {
    return await use(directory);
  } finally {
    rmSync(directory, { recursive: true });
  }
}

/**
 * Runs each server once a round, in turn, and the other way round in every second round: who comes first finds another machine
 * than who comes after. The first round warms up and counts for nothing.
 */
export function takeTurns(servers: readonly Served[], rounds: Rounds): Promise<readonly Run[]> {
  return inDirectory(async (directory) => {
    const load = startChild("load");
    const children = servers.map((served, index) => {
      const { route, framework, inbox = join(directory, `${index}.db`) } = served;
      return { served, child: startChild("server", [route, framework, inbox]) };
    });
    try {
      const started = await Promise.all(children.map(({ served, child }) => start(served, child)));
      for (let round = 0; round <= rounds.count; round++) {
        const senders = [...new Set(servers.map(senderOf))];
        await load.ask({ make: rounds.requests, lifecycles: rounds.lifecycles ?? false, senders });
        const inOrder = round % 2 === 0 ? started : started.toReversed();
        for (const server of inOrder) await runOnce(server, load, { rounds, counts: round > 0 });
      }
      for (const server of started) {
        server.run.memory = await server.ask("memory");
        server.run.spans = await server.ask("spans");
      }
      return started.map(({ run }) => run);
    } finally {
      await Promise.all([load, ...children.map(({ child }) => child)].map((child) => child.stop()));
    }
  });
}

function senderOf({ route }: Served): Sender {
  return route === "stripe" ? "stripe" : "service";
}

async function start(served: Served, child: Child): Promise<Server> {
  const ask = (question: ServerQuestion, count?: number) => child.ask<number>({ ask: question, count });
  const port = await ask("listen");
  const run: Run = {
    perSecond: [],
    p99Ms: [],
    handledPerSecond: [],
    waitP99Ms: [],
    delayP99Ms: [],
    processor: [],
    idleMemory: await ask("memory"),
    memory: 0,
    spans: 0,
  };
  return { served, run, ask, port };
}

const HANDLING: readonly Route[] = ["handle", "traced", "timed", "graphile-worker-handling"];

async function runOnce(
  { served, port, run, ask }: Server,
  load: Child,
  { rounds, counts }: { rounds: Rounds; counts: boolean },
): Promise<void> {
  const requests = served.requests ?? rounds.requests;
  await ask("begin");
  const startedAt = performance.timeOrigin + performance.now();
  const { perSecond } = rounds;
  const sender = senderOf(served);
  const question: LoadQuestion = {
    sendTo: port,
    sender,
    count: requests,
    ...(perSecond === undefined ? {} : { perSecond }),
  };
  const result = await load.ask<LoadResult>(question);
  const delayMs = await ask("delay");
  const handledAt = HANDLING.includes(served.route) ? await ask("await handled", requests) : null;
  const processor = await ask("processor");
  if (!counts) return;
  run.perSecond.push(result.perSecond);
  run.p99Ms.push(result.p99Ms);
  run.delayP99Ms.push(delayMs);
  run.processor.push(processor / requests);
  if (handledAt !== null) run.handledPerSecond.push((requests * 1000) / (handledAt - startedAt));
  if (served.route === "timed") run.waitP99Ms.push(await ask("waits"));
}
