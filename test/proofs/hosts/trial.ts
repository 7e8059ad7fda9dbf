/** What every host must answer, and what must be in its inbox at the end. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import Database from "better-sqlite3";
import { fixtures, signedRequest, tampered } from "../../../src/tools/testing/index.ts";
import { contentsOf } from "../inbox.ts";
import type { Delivery, Host } from "./hosts.ts";

const SETTLED_WITHIN_MS = 20_000;
/** More than a default body parser takes, and less than the receiver's limit. */
const LONG_TEXT = "x".repeat(150_000);
const MIB = 1024 * 1024;

export interface Trial {
  /** Whether a parser stands in front, which answers what is not JSON itself. */
  readonly isBehindParser: boolean;
  /** Whether a connection carries several deliveries. */
  readonly hasConnections: boolean;
  /** How often the whole is done. */
  readonly rounds: number;
}

export interface Outcome {
  /** Deliveries that were answered. */
  readonly count: number;
  readonly problems: readonly string[];
}

/** Tries the host that `start` makes on a new inbox. */
export async function tryHost(start: (inbox: string) => Promise<Host>, trial: Trial): Promise<Outcome> {
  const folder = mkdtempSync(join(tmpdir(), "oncehook-hosts-"));
  const inbox = join(folder, "inbox.db");
  const problems: string[] = [];
  try {
    const host = await start(inbox);
    const traffic = new Traffic(host);
    try {
      for (let round = 0; round < trial.rounds; round++) await oneRound(traffic, trial);
      await whileStoreIsDown(traffic, inbox);
      await host.drain();
      await settled(inbox);
    } finally {
      problems.push(...(await host.end()));
    }
    problems.push(...traffic.problems, ...missingIn(inbox, traffic.accepted));
    return { count: traffic.count, problems };
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** Sends deliveries, and keeps what was answered otherwise than it must be. */
class Traffic {
  readonly problems: string[] = [];
  readonly #host: Host;
  #last = 0;
  accepted = 0;
  count = 0;

  constructor(host: Host) {
    this.#host = host;
  }

  /** Signed, of a message of its own. */
  event(data: object = {}): Delivery {
    return signedRequest(fixtures.queued({ messageId: `msg_${++this.#last}`, data: { ...data } }));
  }

  async expect(what: string, delivery: Delivery, ...statuses: readonly number[]): Promise<void> {
    const status = await this.#host.send(delivery);
    this.count += 1;
    if (!statuses.includes(status))
      this.problems.push(`${what}: ${status || "no answer"}, not ${statuses.join(" or ")}`);
  }

  async accepts(what: string, delivery: Delivery): Promise<void> {
    this.accepted += 1;
    await this.expect(what, delivery, 200);
  }
}

async function oneRound(traffic: Traffic, { isBehindParser, hasConnections }: Trial): Promise<void> {
  const event = traffic.event();
  await traffic.accepts("a signed delivery", event);
  await traffic.expect("the same once more", event, 200);
  await traffic.expect("a forged one", tampered(traffic.event() as never, 70), 401);
  await traffic.expect("one without a signature", { headers: {}, body: traffic.event().body }, 401);
  await traffic.accepts("one of 150 kB", traffic.event({ externalReference: LONG_TEXT }));
  await traffic.expect("a signed body that is not JSON", signedRequest("{ no"), isBehindParser ? 400 : 200);
  await traffic.accepts("one in UTF-8 that is more than ASCII", traffic.event({ externalReference: "häl😀lo" }));
  await Promise.all([1, 2, 3, 4].map(() => traffic.accepts("one of four at once", traffic.event())));
  if (!hasConnections) return;
  const { headers } = traffic.event();
  const large: Delivery = { headers, body: Buffer.alloc(MIB, "x"), isChunked: true };
  await traffic.expect("1 MiB of a forged body", large, 401, 413);
  await traffic.accepts("the next on that connection", traffic.event());
  await traffic.expect("1 MiB without a signature", { ...large, headers: {} }, 401, 413);
  await traffic.accepts("the next on that connection", traffic.event());
}

/** A lock on its file, as by a backup that hangs: what cannot be stored must not be answered with 2xx. */
async function whileStoreIsDown(traffic: Traffic, inbox: string): Promise<void> {
  const foreign = new Database(inbox);
  const event = traffic.event();
  foreign.exec("begin immediate");
  try {
    await traffic.expect("a signed delivery while the store is down", event, 503);
    await traffic.expect("a forged one while the store is down", tampered(event as never, 70), 401);
  } finally {
    foreign.exec("rollback");
    foreign.close();
  }
  await traffic.accepts("its retry", event);
}

/** Resolves when no event waits any more, or after its time. */
async function settled(inbox: string): Promise<void> {
  for (const until = performance.now() + SETTLED_WITHIN_MS; performance.now() < until; await sleep(50)) {
    if (contentsOf(inbox).stored.every(({ state }) => state !== "pending")) return;
  }
}

function missingIn(inbox: string, accepted: number): string[] {
  const { stored, integrity } = contentsOf(inbox);
  const handled = stored.filter(({ state, attempts }) => state === "handled" && attempts === 1).length;
  const problems = integrity === "ok" ? [] : [`the inbox is damaged: ${integrity}`];
  if (stored.length !== accepted) problems.push(`${accepted} events were to be accepted, ${stored.length} are stored`);
  if (handled !== accepted) problems.push(`${handled} of ${accepted} events are handled, at the first attempt`);
  return problems;
}
