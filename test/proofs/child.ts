/** The process of the programmes: opens the inbox that its options describe, receives over HTTP and from its parent, and says what it takes. */
import { readdirSync } from "node:fs";
import { createServer, type RequestListener } from "node:http";
import { monitorEventLoopDelay } from "node:perf_hooks";
import { setTimeout as sleep } from "node:timers/promises";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { nodeWebhook } from "../../adapters/node.ts";
import { incomingOf } from "../../src/tools/testing/deliver.ts";
import { endServer, listenOnLoopback } from "../support/loopback.ts";
import { answeringFirst, checkingThenInserting } from "./careless.ts";
import { joinFile } from "./drivers.ts";
import { answering, givenOptions } from "./process.ts";
import { type Description, PRUNING, receive } from "./receiving.ts";
import type { SourceName } from "./sources.ts";

/** What a process says when it listens. */
export interface Ready {
  readonly port: number;
  /** From the word to open the inbox until it listens. */
  readonly recoveryMs: number;
  /** The processor's time of it, without the loading of modules before, which tells more of Node than of the inbox. */
  readonly processorMs: number;
}

/** A delivery without HTTP. */
export interface Handed {
  readonly source: SourceName;
  readonly headers: Record<string, string>;
  readonly text: string;
}

/** What a delivery was answered with. */
export interface Answered {
  readonly status: number;
  readonly outcome: string;
}

/** What a process takes, when nothing is under way. */
export interface Sample {
  /** After a full collection, with buffers, MiB. */
  readonly heap: number;
  readonly rss: number;
  readonly descriptors: number;
  /** How late the event loop was since the last sample, at the 99th percentile, ms. */
  readonly delayMs: number;
}

const MIB = 1024 * 1024;
const LOOK_EVERY_MS = 5;
const UPKEEP_EVERY_MS = 40;
const DRAIN_MS = 120_000;

setFlagsFromString("--expose-gc");
const collect = runInNewContext("gc") as () => void;

const description = givenOptions<Description>();
const { place, flaws = [], works = true, upkeep, port = 0 } = description;
const naive = flaws.includes("check_then_insert") && "path" in place ? checkingThenInserting(place.path) : null;
const receiving = naive === null ? receive(description) : null;

const listeners = new Map<string, RequestListener>();
const server = createServer((request, response) => {
  const [, name = ""] = (request.url ?? "").split("/");
  (listeners.get(name) ?? listeners.get(""))?.(request, response);
});
// A connection that rests for a while is not closed under the request that comes next.
server.keepAliveTimeout = 120_000;

async function open(): Promise<Ready> {
  const startedAt = performance.now();
  const usedBefore = process.cpuUsage();
  if (naive !== null) listeners.set("", naive.listener);
  if (receiving !== null) await openInbox(receiving);
  if (port > 0) await new Promise<void>((resolve) => server.listen(port, "127.0.0.1", resolve));
  const listening = port > 0 ? port : await listenOnLoopback(server);
  const { user, system } = process.cpuUsage(usedBefore);
  const recoveryMs = performance.now() - startedAt;
  return { port: listening, recoveryMs, processorMs: (user + system) / 1_000 };
}

async function openInbox({ receiver, sources, store }: NonNullable<typeof receiving>): Promise<void> {
  const listenerOf = flaws.includes("answer_before_commit") ? answeringFirst : nodeWebhook;
  for (const name of sources) listeners.set(name, listenerOf(receiver.source(name)));
  listeners.set("", listeners.get("messages") ?? (() => {}));
  if (works) await receiver.start();
  else await receiver.health();
  if (description.driver === "accompanied" && "path" in place) joinFile(place.path);
  if (upkeep !== undefined) void upkeeping(store);
}

let isStopping = false;

async function upkeeping(store: NonNullable<typeof receiving>["store"]): Promise<void> {
  while (!isStopping) {
    await sleep(UPKEEP_EVERY_MS);
    await store.heartbeat({ keyringVersion: "1", counters: {} }).catch(() => {});
    if (upkeep === "prunes") await store.prune(PRUNING).catch(() => {});
  }
}

async function deliver({ source, headers, text }: Handed): Promise<Answered> {
  const incoming = incomingOf({ method: "POST", headers, body: Uint8Array.from(Buffer.from(text)) });
  const { status, body } = (await receiving?.receiver.source(source).handle(incoming)) ?? { status: 0, body: "{}" };
  return { status, outcome: (JSON.parse(body) as { readonly outcome?: string }).outcome ?? "" };
}

/** The longest that the event loop stood still since it was asked last, ms. */
let longestStallMs = 0;
let lookedAt = performance.now();
setInterval(() => {
  const now = performance.now();
  longestStallMs = Math.max(longestStallMs, now - lookedAt - LOOK_EVERY_MS);
  lookedAt = now;
}, LOOK_EVERY_MS);

function stall(): number {
  const stallMs = Math.round(longestStallMs);
  longestStallMs = 0;
  return stallMs;
}

const delay = monitorEventLoopDelay({ resolution: LOOK_EVERY_MS });
delay.enable();

function sample(): Sample {
  const delayMs = delay.percentile(99) / 1e6 - LOOK_EVERY_MS;
  // Twice: what is finalised by the first is freed by the second.
  collect();
  collect();
  delay.reset();
  const { heapUsed, external, rss } = process.memoryUsage();
  const descriptors = readdirSync("/proc/self/fd").length;
  return { heap: (heapUsed + external) / MIB, rss: rss / MIB, descriptors, delayMs };
}

answering(
  {
    ...{ open, deliver, stall, sample },
    advance: (ms: number) => receiving?.advance(ms),
    hold: () => receiving?.hold(),
    /** Handles what is there. */
    drain: () => receiving?.receiver.drain({ budgetMs: DRAIN_MS }),
  },
  async () => {
    isStopping = true;
    await endServer(server);
    await receiving?.receiver.stop();
    naive?.close();
  },
);
