/** A worker and its group commit on a fake clock and a real store, with a recorder between that counts turns and can fail or hold them. */
import { hash } from "node:crypto";
import { expect } from "vitest";
import type { ClaimEnding, WorkerEvents } from "../../src/inbox/completion.ts";
import type { GroupCommit, GroupCommitLimits } from "../../src/inbox/group-commit.ts";
import { Entries, HandlerRegistry } from "../../src/inbox/handlers.ts";
import { Instruments } from "../../src/inbox/instrumentation.ts";
import type { NamedLaneKey } from "../../src/inbox/lane-key.ts";
import type { EventNotice, EventSummary, LaneRecord, NewEvent, NewQuarantine } from "../../src/inbox/record.ts";
import type {
  Acceptance,
  ClaimRequest,
  InboxStore,
  Lease,
  OpenContext,
  QuarantineAnswer,
  Settle,
  Turn,
  TurnResult,
} from "../../src/inbox/store.ts";
import { Worker, type WorkerOptions } from "../../src/inbox/worker.ts";
import type { Receiver } from "../../src/index.ts";
import type { Logger } from "../../src/internal/logger.ts";
import { KNOWN_EVENT_TYPES, parseEvent } from "../../src/sources/messaging/parse.ts";
import { serviceReader } from "../../src/sources/messaging/source.ts";
import { memoryStore } from "../../src/stores/memory.ts";
import { createFakeClock, type FakeClock } from "../../src/tools/testing/fake-clock.ts";

/** Of the messaging service. */
export const SERVICE_TYPES = { known: KNOWN_EVENT_TYPES, order: "sequence", holdBackMs: 0 } as const;

/** A registry, typed by the service's events. */
export type Handlers<Tx> = Pick<Receiver<Tx>, "on" | "onAny" | "onUnknown" | "onLate">;

export interface LogLine {
  readonly level: string;
  readonly fields: Readonly<Record<string, unknown>>;
  readonly message: string;
}

/** A logger that keeps its lines. */
function recordingLogger(lines: LogLine[]): Logger {
  const at = (level: string) => (fields: object, message: string) =>
    void lines.push({ level, fields: { ...fields }, message });
  return { debug: at("debug"), info: at("info"), warn: at("warn"), error: at("error") };
}

/** Fails or holds chosen turns of a real store, and keeps account of its leases. */
export class Recorder<Tx> {
  readonly turns: Turn<Tx>[] = [];
  readonly results: TurnResult[] = [];
  /** Leases that were claimed and have not ended, by lane and token. */
  readonly outstanding = new Map<string, Lease>();
  /** Answers of leases that were settled or lost more than once. */
  readonly doubled: string[] = [];
  readonly extended: number[][] = [];
  failNextTurns = 0;
  /** The turn happens, and then its answer is lost. */
  failAfterCommit = 0;
  failExtends = 0;
  /** Answers the settles of the next turns as unfinished. */
  unfinishedTurns = 0;
  /** Answers "lost" for these events. */
  readonly losing = new Set<number>();
  /** Awaited before the next turns. */
  gate: Promise<void> | null = null;
  /** Awaited between `nextDue`'s reading and its answer. */
  nextDueGate: Promise<void> | null = null;
  readonly store: InboxStore<Tx>;
  #settledOnce = new Set<string>();

  constructor(inner: InboxStore<Tx>) {
    this.store = {
      ...inner,
      step: (turn) => this.#step(inner, turn),
      extend: async (leases, leaseMs) => {
        this.extended.push(leases.map((lease) => lease.event));
        if (this.failExtends-- > 0) throw new Error("no answer");
        const kept = await inner.extend(leases, leaseMs);
        return kept.map((held, index) => held && !this.losing.has(leases[index]?.event ?? 0));
      },
      nextDue: async () => {
        const due = await inner.nextDue();
        await this.nextDueGate;
        return due;
      },
    };
    this.failExtends = 0;
  }

  async #step(inner: InboxStore<Tx>, turn: Turn<Tx>): Promise<TurnResult> {
    this.turns.push(turn);
    await this.gate;
    if (this.failNextTurns > 0) {
      this.failNextTurns--;
      throw new Error("the disk is on fire");
    }
    if (this.unfinishedTurns > 0 && turn.settles.length > 0) {
      this.unfinishedTurns--;
      const { settles, ...rest } = turn;
      const result = await inner.step({ ...rest, settles: [] });
      return { ...result, settled: settles.map(() => ({ status: "unfinished" })) };
    }
    const result = await inner.step(turn);
    for (const [index, { lease, kind }] of turn.settles.entries()) {
      if (result.settled[index]?.status === "effect_failed") continue;
      const key = `${lease.lane}/${lease.token}`;
      if (this.#settledOnce.has(key)) this.doubled.push(`${key} ${kind}`);
      this.#settledOnce.add(key);
      this.outstanding.delete(key);
    }
    for (const lease of result.leases) this.outstanding.set(`${lease.lane}/${lease.token}`, lease);
    this.results.push(result);
    if (this.failAfterCommit > 0) {
      this.failAfterCommit--;
      throw new Error("the answer was lost");
    }
    return result;
  }
}

export interface BenchOptions<Tx> {
  readonly register?: (registry: Handlers<Tx>) => void;
  readonly store?: InboxStore<Tx>;
  readonly worker?: Partial<WorkerOptions>;
  readonly batch?: Partial<GroupCommitLimits>;
  readonly handlerTimeoutMs?: number;
  readonly clock?: FakeClock;
}

export type Wish = Partial<Omit<NewEvent, "lane">> & { readonly body?: object };

const ROUNDS = 40;

/** Lets promises and `setImmediate` callbacks settle, without any time passing. */
export async function rounds(count = ROUNDS): Promise<void> {
  for (let round = 0; round < count; round++) await new Promise<void>((resolve) => setImmediate(resolve));
}

/** A promise that a test resolves by hand. */
export function deferred<T = void>(): { promise: Promise<T>; resolve(value: T): void; reject(error: unknown): void } {
  let resolve: (value: T) => void = () => {};
  let reject: (error: unknown) => void = () => {};
  const promise = new Promise<T>((yes, no) => {
    resolve = yes;
    reject = no;
  });
  return { promise, resolve, reject };
}

/** Whether a promise has resolved by now. */
export function watched(promise: Promise<unknown>): () => boolean {
  let isOver = false;
  void promise.then(() => {
    isOver = true;
  });
  return () => isOver;
}

export class Bench<Tx = never> {
  readonly clock: FakeClock;
  readonly recorder: Recorder<Tx>;
  readonly entries: Entries<Tx>;
  readonly registry: Handlers<Tx>;
  readonly instruments: Instruments;
  readonly worker: Worker<Tx>;
  readonly groupCommit: GroupCommit<Tx>;
  readonly lines: LogLine[] = [];
  readonly endings: [event: number, ending: ClaimEnding][] = [];
  readonly failures: { notice: EventNotice; attempt: number; error: unknown }[] = [];
  readonly dead: { notice: EventNotice; attempts: number; code: string }[] = [];
  readonly #inner: InboxStore<Tx>;
  readonly #logger: Logger;

  constructor(inner: InboxStore<Tx>, options: BenchOptions<Tx>) {
    this.#inner = inner;
    this.clock = options.clock ?? createFakeClock();
    const clock = this.clock;
    this.recorder = new Recorder(inner);
    const logger = recordingLogger(this.lines);
    this.#logger = logger;
    this.instruments = new Instruments(logger, clock);
    const handlers = new HandlerRegistry<Tx>(SERVICE_TYPES);
    this.entries = new Entries([{ name: "service", source: serviceReader({ gapWait: () => 0 }), handlers }]);
    this.registry = handlers as unknown as Handlers<Tx>;
    options.register?.(this.registry);
    const standard = { concurrency: 4, flow: null, leaseMs: 30_000, maxAttempts: 12, onDead: "continue" as const };
    const { handlerTimeoutMs = 30_000, batch = {} } = options;
    this.worker = new Worker<Tx>(this.recorder.store, this, this.#events(), {
      ...{ ...standard, clock, random: () => 1, logger, handlerTimeoutMs, limits: batch },
      ...options.worker,
    });
    this.groupCommit = this.worker.groupCommit;
  }

  async open(): Promise<this> {
    await this.#inner.open(openContext(this.clock, this.#logger));
    await this.#inner.admit(this.entries.presets);
    return this;
  }

  #events(): WorkerEvents {
    return {
      ended: (event, ending) => void this.endings.push([event, ending]),
      waits: () => {},
      claimed: () => {},
      failed: (notice, { attempt, error }) => void this.failures.push({ notice, attempt, error }),
      deadLettered: (notice, attempts, code) => void this.dead.push({ notice, attempts, code }),
    };
  }

  /** Accepts an event of lane `name`; resolves after the commit. */
  accept(name: string, sequence = 1, wish: Wish = {}): Promise<Acceptance> {
    const event = outbound(this.clock, name, sequence, wish);
    const parsed = parseEvent(event.raw);
    if (!parsed.ok) throw new Error(`The test's body is no event: ${parsed.code}`);
    return new Promise((resolve, reject) => {
      this.groupCommit.accept(event, parsed.event, (error, acceptance) => {
        if (error !== null || acceptance === null) reject(error);
        else resolve(acceptance);
      });
    });
  }

  /** Accepts events of `count` lanes in one turn. */
  acceptMany(count: number, prefix = "m"): Promise<Acceptance[]> {
    return Promise.all(Array.from({ length: count }, (_, index) => this.accept(`${prefix}${index}`)));
  }

  /** Holds the next turns until the function is called. */
  hold(): () => void {
    const { promise, resolve } = deferred();
    this.recorder.gate = promise;
    return () => {
      if (this.recorder.gate === promise) this.recorder.gate = null;
      resolve();
    };
  }

  /** Drives the lane of what was accepted, as a request does; counts how often it is said not to be due. */
  drive(acceptance: Acceptance): { refused: number } {
    if (acceptance.outcome === "failed") throw acceptance.error;
    const told = { refused: 0 };
    this.worker.claimOnDemand(acceptance.lane, acceptance.event, () => told.refused++);
    return told;
  }

  async lane(name: string): Promise<LaneRecord> {
    const lane = await this.#inner.lane(laneOf(name));
    if (lane === null) throw new Error(`There is no lane ${name}.`);
    return lane;
  }

  async events(): Promise<readonly EventSummary[]> {
    return (await this.#inner.find({ order: "oldest", limit: 1_000 })).items;
  }

  async states(): Promise<readonly string[]> {
    return (await this.events()).map((event) => event.outcome ?? event.state);
  }

  async expectAllHandled(count: number): Promise<void> {
    expect(await this.states()).toEqual(Array(count).fill("handled"));
    await this.expectNothingLeaked();
  }

  /** No lease is held, none was settled twice, and no lane waits without a moment to go on (I3, I5). */
  async expectNothingLeaked(): Promise<void> {
    expect([...this.recorder.outstanding.values()].map((lease) => lease.event)).toEqual([]);
    expect(this.recorder.doubled).toEqual([]);
    for (const event of await this.events()) {
      if (event.state !== "pending") continue;
      const lane = await this.#inner.lane(event.laneId);
      expect(lane?.readyAt === null && lane.status !== "blocked").toBe(false);
    }
  }
}

export async function openBench<Tx = never>(options: BenchOptions<Tx> = {}): Promise<Bench<Tx>> {
  const store: InboxStore<Tx> = options.store ?? memoryStore({ volatile: true });
  return new Bench<Tx>(store, options).open();
}

/** A bench whose worker has started, with one handler for all events. */
export async function startBench(
  handler: Parameters<Handlers<never>["onAny"]>[0],
  options: Omit<BenchOptions<never>, "register"> = {},
): Promise<Bench> {
  const bench = await openBench({ ...options, register: (on) => on.onAny(handler) });
  bench.worker.start();
  return bench;
}

/** A batch of another process: it claims one lane, unless `claim` says otherwise. */
export function stepElsewhere<Tx>(
  store: InboxStore<Tx>,
  claim: Partial<ClaimRequest> = {},
  turn: Partial<Turn<Tx>> = {},
): Promise<TurnResult> {
  const standard = { limit: 1, leaseMs: 30_000, maxAttempts: 99, onDead: "continue", mode: "ordinary" } as const;
  return store.step({
    ...{ settles: [], accepts: [], quarantines: [], quarantineQuota: { maxRows: 1, maxBytes: 1 } },
    claim: { ...standard, takes: () => true, ...claim },
    ...turn,
  });
}

export const RULES = { name: "default", toleranceMs: 300_000 };

export function openContext(clock: FakeClock, logger: Logger, id = "one"): OpenContext {
  const instance = { id, host: "here", pid: process.pid, pidStartedAt: "1" };
  return { clock, logger, rules: RULES, migrate: "auto", instance };
}

/** The lane of an outbound message. */
export function laneOf(name: string): NamedLaneKey {
  return { source: "service", tenant: "client", name, order: "sequence" };
}

/** An outbound event as the receiver makes it; `message.sent` unless the wish says otherwise. */
export function outbound(clock: FakeClock, name: string, sequence: number, wish: Wish = {}): NewEvent {
  const { body, ...rest } = wish;
  const eventType = wish.eventType ?? "message.sent";
  const now = clock.now();
  const data = {
    ...{ messageId: name, externalReference: "order-77", sendFrom: "+15550100001", to: "+15550100002" },
    ...{ status: eventType === "message.failed" ? "failed" : "sent" },
    error: eventType === "message.failed" ? { code: "PROVIDER_SEND_FAILED", message: "No.", details: {} } : null,
  };
  const ids = { apiClientId: "client", messageId: name };
  const common = { eventType, direction: "outbound", occurredAt: now, ...ids, sequence, data };
  const raw = Buffer.from(JSON.stringify({ ...common, ...body }));
  return {
    lane: laneOf(name),
    ...{ sequence, eventType, occurredAt: now, signedAt: now, gapWaitMs: 90_000 },
    ...{ digest: hash("sha256", raw, "buffer"), raw, trace: null, peer: null, externalReference: null },
    ...rest,
  };
}

const GONE = { lane: 999, token: 1, event: 999 };

/** Ends of a lease that is gone, so that no effect runs. */
export const ENDS: Readonly<Record<"effects" | "a function" | "no effects" | "a retry", Settle<never>>> = {
  effects: { ...complete(), effects: [{ text: "select 1", values: [] }] },
  "a function": { ...complete(), effects: [() => {}] },
  "no effects": { ...complete(), effects: [] },
  "a retry": {
    kind: "retry",
    lease: GONE,
    delayMs: 0,
    failure: { code: "handler_failed", message: "No.", durationMs: 1 },
  },
};

function complete() {
  return { kind: "complete", lease: { ...GONE, key: laneOf("gone") }, outcome: "handled" } as const;
}

/** Stores a body that is no event; resolves after the commit. */
export function quarantine(bench: Bench, text = "{", bytes = 1): Promise<QuarantineAnswer | null> {
  const raw = Buffer.from(text.padEnd(bytes));
  const body: NewQuarantine = {
    ...{ reason: "invalid_json", slot: "current", signer: "s", kinds: ["delivery"], signedAt: bench.clock.now() },
    ...{ source: "service", tenant: null, digest: raw, raw, trace: null },
  };
  return new Promise((resolve, reject) => {
    bench.groupCommit.quarantine(body, (error, answer) => (error === null ? resolve(answer) : reject(error)));
  });
}
