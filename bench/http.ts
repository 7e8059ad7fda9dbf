/** Servers that take turns under the same load. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type Child, startChild } from "./child.ts";
import type { LoadResult } from "./load.ts";
import type { Framework, Route, ServerQuestion } from "./server.ts";

export interface Served {
  readonly route: Route;
  readonly framework: Framework;
  /** A file that holds an inbox already, or a Postgres database. Default: a new file. */
  readonly inbox?: string;
}

export interface Rounds {
  readonly count: number;
  readonly requests: number;
  readonly lifecycles?: boolean;
}

/** What one server did in each of its rounds. */
export interface Run {
  /** Requests a second. */
  readonly perSecond: number[];
  readonly p99Ms: number[];
  /** Events a second, from the first request until the last was handled; `handle` and `traced` only. */
  readonly handledPerSecond: number[];
  readonly delayP99Ms: number[];
  /** Microseconds of the server's processor time, for one request with all that follows from it. */
  readonly processor: number[];
  /** MiB, after the last round. */
  memory: number;
  /** Exported so far, of `traced`. */
  spans: number;
}

interface Server {
  readonly served: Served;
  readonly port: number;
  readonly run: Run;
  ask(ask: ServerQuestion, count?: number): Promise<number>;
  stop(): Promise<void>;
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
    const started = await Promise.all(servers.map((served, index) => start(served, join(directory, `${index}.db`))));
    try {
      for (let round = 0; round <= rounds.count; round++) {
        await load.ask({ make: rounds.requests, lifecycles: rounds.lifecycles ?? false });
        const inOrder = round % 2 === 0 ? started : started.toReversed();
        for (const server of inOrder) await runOnce(server, load, { requests: rounds.requests, counts: round > 0 });
      }
      for (const server of started) {
        server.run.memory = await server.ask("memory");
        server.run.spans = await server.ask("spans");
      }
    } finally {
      await Promise.all([load, ...started].map((child) => child.stop()));
    }
    return started.map(({ run }) => run);
  });
}

async function start(served: Served, newInbox: string): Promise<Server> {
  const child: Child = startChild("server", [served.route, served.framework, served.inbox ?? newInbox]);
  const ask = (question: ServerQuestion, count?: number) => child.ask<number>({ ask: question, count });
  const run: Run = {
    perSecond: [],
    p99Ms: [],
    handledPerSecond: [],
    delayP99Ms: [],
    processor: [],
    memory: 0,
    spans: 0,
  };
  return { served, run, ask, port: await ask("listen"), stop: () => child.stop() };
}

async function runOnce(
  server: Server,
  load: Child,
  { requests, counts }: { requests: number; counts: boolean },
): Promise<void> {
  await server.ask("begin");
  const startedAt = performance.timeOrigin + performance.now();
  const result = await load.ask<LoadResult>({ sendTo: server.port });
  const delayMs = await server.ask("delay");
  const { route } = server.served;
  const handledAt = route === "handle" || route === "traced" ? await server.ask("await handled", requests) : null;
  const processor = await server.ask("processor");
  if (!counts) return;
  server.run.perSecond.push(result.perSecond);
  server.run.p99Ms.push(result.p99Ms);
  server.run.delayP99Ms.push(delayMs);
  server.run.processor.push(processor / requests);
  if (handledAt !== null) server.run.handledPerSecond.push((requests * 1000) / (handledAt - startedAt));
}
