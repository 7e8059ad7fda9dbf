/** Processes that are killed and stopped, a server that crashes and connections that end, while deliveries come: what was acknowledged is done once. */
import { setTimeout as sleep } from "node:timers/promises";
import { eventIdentity } from "../../src/index.ts";
import { fixtures, seededRandom, shuffled } from "../../src/testing/index.ts";
import { type Delivery, message, requestOf } from "../concurrency/load.ts";
import { Bills, lateBills } from "../proofs/bills.ts";
import { type Breach, breachesOf } from "../proofs/history.ts";
import { contentsOn } from "../proofs/postgres-inbox.ts";
import { otherIdentity } from "../proofs/sources.ts";
import { type Blows, type Struck, strikeAll } from "./blows.ts";
import {
  type MemberOptions,
  type PostgresFamily,
  SUMS,
  type Verdict,
  withPostgresFamily,
} from "./concurrency-family.ts";
import type { PgBouncer } from "./pgbouncer.ts";
import type { PostgresServer } from "./server.ts";

const PROCESSES = 4;
const SENDERS = 16;
/** Messages whose events are mixed. */
const MIXED = 8;
/** Pending events at which the senders wait: more would only be handled at the end, when nothing happens any more. */
const MOST_PENDING = 2_000;

export interface CrashTerms extends Blows {
  readonly server: PostgresServer;
  /** Half of the processes are behind it. Null: none. */
  readonly bouncer: PgBouncer | null;
  readonly leaseMs: number;
  /** Deliveries come until so many are, and until everything has happened. */
  readonly acknowledged: number;
  /** Objects of Stripe, each with a lane. */
  readonly lanes: number;
  readonly seed: number;
  readonly timeoutMs: number;
  say(line: string): void;
}

export interface CrashReport extends Struck {
  readonly seed: number;
  readonly seconds: number;
  /** How often each happened. */
  readonly blows: Omit<Blows, "pauses" | "pauseMs">;
  readonly acknowledged: number;
  /** Deliveries without an answer, and those refused with 503, while something was down. */
  readonly unanswered: number;
  readonly refused: number;
  /** Other answers than 200 and 503. */
  readonly strange: readonly string[];
  /** Events that were handed out more than once. */
  readonly repeated: number;
  /** Effects of processes behind the pooler. */
  readonly pooled: number;
  readonly late: ReturnType<typeof lateBills>;
  readonly breaches: readonly Breach[];
  readonly verdict: Verdict;
}

export async function surviveCrashes(terms: CrashTerms): Promise<CrashReport> {
  const { server, bouncer, seed, timeoutMs, say, kills, restarts, cuts, bounces } = terms;
  return withPostgresFamily(server.url, async (family) => {
    const startedAt = performance.now();
    const load = new CrashLoad(family, terms);
    for (let place = 0; place < PROCESSES; place++) await family.add(memberAt(place, terms));
    const sending = load.run();
    sending.catch(() => {}); // It is awaited below, after the crashes.
    const nextAnswer = () => load.nextAnswer();
    const struck = await strikeAll({ family, server, bouncer, seed, nextAnswer, say }, terms);
    load.finish(terms.acknowledged);
    await sending;
    await family.settled(timeoutMs);
    await family.stop();
    const { sent, acknowledged, unanswered, refused, strange } = load;
    const { effects, stored } = await contentsOn(family);
    const breaches = breachesOf({
      ...{ sent, forged: [], acknowledged, replayed: family.replayed, effects, stored },
      ...{ moment: "ended", everyHandlerWrites: true },
    });
    return {
      ...{ seed, seconds: Math.round((performance.now() - startedAt) / 1000) },
      blows: { kills, restarts, cuts, bounces },
      ...{ acknowledged: acknowledged.size, unanswered, refused, strange, ...struck },
      repeated: await family.number("select count(*) from {}.event where attempts > 1"),
      pooled: await family.number("select count(*) from {}_effect where is_pooled"),
      ...{ late: lateBills(effects), breaches },
      verdict: await family.verdict(),
    };
  });
}

/** The first one lacks a source. Every second one adds in the opposite order. */
function memberAt(place: number, { bouncer, server, seed, leaseMs }: CrashTerms): Partial<MemberOptions> {
  const isPooled = bouncer !== null && place >= PROCESSES / 2;
  return {
    ...{ failures: 0.02, seed, leaseMs, isPooled, url: isPooled ? bouncer.url : server.url },
    adds: place % 2 === 0 ? SUMS : SUMS.toReversed(),
    sources: ["messages", "billing", "held", ...(place === 0 ? [] : (["code"] as const))],
  };
}

interface Sent extends Omit<Delivery, "child"> {
  readonly identity: string;
}

/** Sends each event until it is acknowledged, to whichever process there is. */
class CrashLoad {
  /** Identities. */
  readonly sent: string[] = [];
  readonly acknowledged = new Set<string>();
  unanswered = 0;
  refused = 0;
  readonly strange: string[] = [];
  readonly #family: PostgresFamily;
  readonly #random: () => number;
  readonly #bills: Bills;
  readonly #queue: Sent[] = [];
  readonly #listeners: (() => void)[] = [];
  #messages = 0;
  /** How many it takes to end, once that is said. */
  #least = Number.POSITIVE_INFINITY;

  constructor(family: PostgresFamily, { seed, lanes }: Pick<CrashTerms, "seed" | "lanes">) {
    this.#family = family;
    this.#random = seededRandom(seed + 1);
    this.#bills = new Bills(this.#random, lanes);
  }

  /** Until `finish` is called and everything begun is acknowledged. */
  async run(): Promise<void> {
    await Promise.all(Array.from({ length: SENDERS }, () => this.#send()));
  }

  finish(least: number): void {
    this.#least = least;
  }

  get #enough(): boolean {
    return this.acknowledged.size >= this.#least;
  }

  nextAnswer(): Promise<void> {
    return new Promise((resolve) => this.#listeners.push(resolve));
  }

  async #send(): Promise<void> {
    for (;;) {
      if (this.#queue.length === 0) await this.#room();
      if (this.#queue.length === 0 && this.#enough) return;
      if (this.#queue.length === 0) this.#refill();
      const event = this.#queue.shift();
      if (event !== undefined) await this.#untilAcknowledged(event);
    }
  }

  /** Waits while too much is pending. */
  async #room(): Promise<void> {
    const pending = () => this.#family.seen("select count(*) from {}.event where state = 0");
    while (!this.#enough && (await pending()) > MOST_PENDING) await sleep(50);
  }

  /** The events of some messages, as many pushes and those of as many objects of Stripe, mixed; some of them a second time. */
  #refill(): void {
    const events = Array.from({ length: MIXED }, () => [
      ...this.#messageAndPush(),
      ...this.#bills.next().map((bill) => ({ ...bill, copy: 0 })),
    ]).flat();
    this.sent.push(...events.map(({ identity }) => identity));
    const repeated = events.filter(() => this.#random() < 0.2).map((sent) => ({ ...sent, copy: 1 }));
    this.#queue.push(...shuffled([...events, ...repeated], this.#random));
  }

  #messageAndPush(): Sent[] {
    const messageId = `m-${++this.#messages}`;
    const push = fixtures.github({ id: messageId });
    return [
      ...message(messageId).map((event): Sent => {
        const identity = eventIdentity(event, Buffer.from(JSON.stringify(event)));
        return { source: "messages", event, copy: 0, identity };
      }),
      { source: "code", event: push, copy: 0, identity: otherIdentity("code", JSON.stringify(push)) },
    ];
  }

  async #untilAcknowledged(sent: Sent): Promise<void> {
    for (;;) {
      const children = this.#family.having(sent.source);
      const child = children[Math.floor(this.#random() * children.length)];
      const { status, outcome } = (await child?.pass(sent.source, requestOf(sent))) ?? { status: 0 };
      if (status === 200) {
        this.acknowledged.add(sent.identity);
        for (const resolve of this.#listeners.splice(0)) resolve();
        return;
      }
      if (status === 503) this.refused += 1;
      else if (status === 0) this.unanswered += 1;
      else this.strange.push(`${status} ${outcome}`);
      await sleep(5);
    }
  }
}
