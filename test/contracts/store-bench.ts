/** The bench of the store contract: a store on a fake clock, and short methods for what cases do with it. */
import { hash } from "node:crypto";
import type {
  EventRecord,
  EventSummary,
  LaneKey,
  LaneRecord,
  NewEvent,
  NewQuarantine,
  Outcome,
  QuarantineRecord,
} from "../../src/inbox/record.ts";
import { DEFAULT_SEQUENCE_RULES } from "../../src/inbox/sequence-rules.ts";
import type {
  Act,
  ActResult,
  ClaimRequest,
  Effect,
  EffectStatement,
  EntryPreset,
  EventQuery,
  Failure,
  InboxRules,
  InboxStore,
  InstanceIdentity,
  Lease,
  LeaseRef,
  OpenContext,
  PrunePolicy,
  QuarantineQuery,
  Settle,
  SettleResult,
  StoreCapabilities,
  Takes,
  Turn,
  TurnResult,
} from "../../src/inbox/store.ts";
import { silentLogger } from "../../src/internal/logger.ts";
import { createFakeClock, type FakeClock } from "../../src/tools/testing/fake-clock.ts";

/** The part of an `expect` function that the contract uses. That of Vitest and of Jest fits. */
export type ContractExpect = (value: unknown) => {
  toBe(expected: unknown): void;
  toEqual(expected: unknown): void;
  toMatchObject(expected: object): void;
};

/** A store made for one test. */
export interface StoreUnderTest<Tx> {
  /** Not yet open: the contract opens it, on its own clock. */
  readonly store: InboxStore<Tx>;
  /** Another store on the same place, not yet open. Needed if it is durable or shared. */
  reopen?(): Promise<InboxStore<Tx>>;
  /**
   * A process that the store takes for running, or for one of this host that no longer runs. Needed by a store that does not use
   * `process.kill(pid, 0)` to find out.
   */
  instance?(life: "running" | "gone"): Omit<InstanceIdentity, "id">;
  /** How an effect writes a text, as a function and as a statement, and how the test reads what was committed. Needed if it is transactional. */
  readonly effects?: {
    write(tx: Tx, text: string): unknown;
    statement(text: string): EffectStatement;
    read(): Promise<readonly string[]>;
  };
  /** Removes the place. Every store opened on it has been closed. */
  dispose(): Promise<void>;
}

/** One promise of the contract. */
export interface ContractCase {
  readonly name: string;
  /** Runs only on a store that can do this; `plain` is one that is not transactional. */
  readonly needs?: keyof StoreCapabilities | "plain";
  /** Of the entry that all events come through unless a case says otherwise. Default 1. */
  readonly firstSequence?: number | "any";
  run(bench: Bench): Promise<void>;
}

/** A case that every store or adapter has to pass. */
export function it<TBench>(name: string, run: (bench: TBench) => Promise<void>) {
  return { name, run };
}

/** Cases for stores that can do this. */
export function needing(
  needs: ContractCase["needs"] & string,
  cases: readonly ContractCase[],
): readonly ContractCase[] {
  return cases.map((one) => ({ ...one, needs }));
}

/** The fields of an event that matter to a case. */
type EventWish = Partial<Omit<NewEvent, "lane">> & { readonly lane?: Partial<LaneKey>; readonly note?: string };

/** Higher than any process id of Linux and macOS. */
const NO_PID = 2 ** 31 - 2;
const MINUTE = 60_000;

const FAILURE: Failure = { code: "handler_failed", message: "It failed.", durationMs: 5 };

/** Whose events they are by default. */
const OWNER = { source: "service", tenant: "client" } as const;

/** The name of an event's lane, or its own id if it is alone there. */
export function nameOf({ key, ownId }: Pick<Lease, "key" | "ownId">): string {
  return key.name ?? ownId ?? "";
}

let openings = 0;

/** An event with its body. */
export type WholeEvent = EventSummary & EventRecord;

/** A store under test, and what a case does with it. */
export class Bench {
  readonly clock: FakeClock;
  readonly place: StoreUnderTest<unknown>;
  readonly expect: ContractExpect;
  readonly #firstSequence: number | "any";
  readonly #opened: InboxStore<unknown>[] = [];
  store: InboxStore<unknown>;

  constructor(
    place: StoreUnderTest<unknown>,
    expect: ContractExpect,
    firstSequence: number | "any" = 1,
    clock: FakeClock = createFakeClock(),
  ) {
    this.clock = clock;
    this.place = place;
    this.expect = expect;
    this.store = place.store;
    this.#firstSequence = firstSequence;
  }

  /** Opens `store` as a new instance. */
  async open(
    store = this.store,
    overrides: Partial<OpenContext> = {},
    life: "running" | "gone" = "running",
  ): Promise<InboxRules> {
    const standard = {
      ...{ clock: this.clock, logger: silentLogger, rules: this.rules },
      ...{ migrate: "auto" as const },
    };
    this.#opened.push(store);
    const context = { ...standard, instance: this.instance(life), ...overrides };
    const rules = await store.open(context);
    if (context.rules !== "recorded" && context.copying !== true) await store.admit([this.entry]);
    return rules;
  }

  /** What a receiver with the messaging service records once it has opened this inbox. */
  get entry(): EntryPreset {
    const sequence = { ...DEFAULT_SEQUENCE_RULES, firstSequence: this.#firstSequence };
    return { name: OWNER.source, preset: OWNER.source, shows: [], sequence };
  }

  /** The rules that a receiver passes when it opens this inbox. */
  get rules(): InboxRules {
    return { name: "contract", toleranceMs: 5 * MINUTE };
  }

  instance(life: "running" | "gone"): InstanceIdentity {
    const id = `instance-${++openings}`;
    const pid = life === "running" ? process.pid : NO_PID;
    return { host: "contract", pid, pidStartedAt: "contract", ...this.place.instance?.(life), id };
  }

  /** A second store on the same place, open. */
  async another(life: "running" | "gone" = "running"): Promise<InboxStore<unknown>> {
    const store = await this.second();
    await this.open(store, {}, life);
    return store;
  }

  /** A second store on the same place, not yet open. */
  async second(): Promise<InboxStore<unknown>> {
    const store = await this.place.reopen?.();
    if (store !== undefined) return store;
    throw new Error("A durable or shared store needs reopen() in the contract's makeStore.");
  }

  /** Closes the store and continues with a new one on the same place. */
  async restart(): Promise<void> {
    await this.store.close();
    this.store = await this.another();
  }

  async dispose(): Promise<void> {
    for (const store of this.#opened) await store.close();
    await this.place.dispose();
  }

  /** An event, by default of message `m` and with a gap wait of 90 s. One that is alone in its lane has the lane's name as its own id. */
  event(sequence: number, wish: EventWish = {}): NewEvent {
    const { lane, note, ...rest } = wish;
    const given: LaneKey = { ...OWNER, name: "m", order: "sequence", ...lane };
    const isAlone = given.order === null;
    const eventType = wish.eventType ?? "message.sent";
    const raw = wish.raw ?? bytes(JSON.stringify({ note: note ?? "" }));
    const now = this.clock.now();
    return {
      ...{ sequence, eventType, occurredAt: now, signedAt: now, gapWaitMs: 90_000 },
      ...{ digest: sha256Of(raw), trace: null, peer: null, externalReference: null },
      ...(isAlone && { ownId: given.name ?? "m" }),
      ...rest,
      lane: isAlone ? { ...given, name: null } : given,
      raw,
    };
  }

  /** An event of another message. */
  of(name: string, sequence: number, wish: EventWish = {}): NewEvent {
    return this.event(sequence, { ...wish, lane: { ...wish.lane, name } });
  }

  quarantine(text: string, wish: Partial<NewQuarantine> = {}): NewQuarantine {
    const raw = wish.raw ?? bytes(text);
    const standard = { reason: "invalid_json", slot: "current", signer: "signer-1", kinds: ["delivery"], trace: null };
    return { ...OWNER, ...standard, signedAt: this.clock.now(), digest: sha256Of(raw), ...wish, raw };
  }

  /** Runs one batch, which by default claims nothing. */
  step(
    turn: Partial<Omit<Turn<unknown>, "claim">> & { readonly claim?: Partial<ClaimRequest> } = {},
  ): Promise<TurnResult> {
    const claim = { limit: 0, leaseMs: 30_000, maxAttempts: 5, onDead: "continue", mode: "ordinary", takes } as const;
    return this.store.step({
      ...{ settles: [], accepts: [], quarantines: [] },
      quarantineQuota: { maxRows: 1_000, maxBytes: 64 * 1024 * 1024 },
      ...turn,
      claim: { ...claim, ...turn.claim },
    });
  }

  accept(...accepts: readonly NewEvent[]): Promise<TurnResult> {
    return this.step({ accepts });
  }

  /** Accepts a late event where no handler takes one. */
  async record(event: NewEvent): Promise<TurnResult> {
    const result = await this.accept(event);
    const [acceptance] = result.accepted;
    if (acceptance === undefined || acceptance.outcome === "failed") throw new Error("The event was not accepted.");
    const claimed = await this.step({ claim: { limit: 1, lane: acceptance.lane, takes: recordsLate } });
    this.expect(claimed.leases).toEqual([]);
    return result;
  }

  /** Claims up to 100 due lanes. */
  async claim(request: Partial<ClaimRequest> = {}): Promise<readonly Lease[]> {
    return (await this.step({ claim: { limit: 100, ...request } })).leases;
  }

  /** Claims the only due lane. */
  async claimOne(request: Partial<ClaimRequest> = {}): Promise<Lease> {
    return this.only(await this.claim(request));
  }

  /** Claims the only two due lanes. */
  async claimTwo(request: Partial<ClaimRequest> = {}): Promise<readonly [Lease, Lease]> {
    const [first, second] = await this.claim(request);
    if (first === undefined || second === undefined) throw new Error("Two lanes were due.");
    return [first, second];
  }

  only<T>(items: readonly T[]): T {
    this.expect(items.length).toBe(1);
    const [item] = items;
    if (item === undefined) throw new Error("Nothing is there.");
    return item;
  }

  /** Repeats unfinished settles, as the core does. */
  async settle(...settles: readonly Settle<unknown>[]): Promise<readonly SettleResult["status"][]> {
    return (await this.settled(settles)).map((result) => result.status);
  }

  async settled(settles: readonly Settle<unknown>[]): Promise<readonly SettleResult[]> {
    const { settled } = await this.step({ settles });
    const again = await Promise.all(
      settled.map(async (result, index): Promise<readonly SettleResult[]> => {
        const settle = settles[index];
        return result.status === "unfinished" && settle !== undefined ? this.settled([settle]) : [result];
      }),
    );
    return again.flat();
  }

  complete(
    lease: LeaseRef & Pick<Lease, "key">,
    outcome: Outcome = "handled",
    effects: readonly Effect<unknown>[] = [],
  ): Settle<unknown> {
    return { kind: "complete", lease, outcome, effects };
  }

  retry(lease: LeaseRef, delayMs: number, failure: Failure = FAILURE): Settle<unknown> {
    return { kind: "retry", lease, delayMs, failure };
  }

  dead(lease: LeaseRef, onDead: "continue" | "block" = "continue", failure: Failure = FAILURE): Settle<unknown> {
    return { kind: "dead", lease, failure, onDead };
  }

  /** @param ran - a handler ran, as in a failed probe */
  release(lease: Lease, delayMs = 0, ran = false): Settle<unknown> {
    return { kind: "release", lease, delayMs, ran };
  }

  /** Accepts, claims and completes one event. */
  async handle(event: NewEvent): Promise<Lease> {
    await this.accept(event);
    const lease = await this.claimOne();
    this.expect(await this.settle(this.complete(lease))).toEqual(["settled"]);
    return lease;
  }

  act(act: Act): Promise<ActResult> {
    return this.store.act(act, "operator");
  }

  /** @param name - of the lane, or the own id of the event that is alone in it */
  async lane(name = "m", key: Partial<LaneKey> = {}): Promise<LaneRecord> {
    const { source, tenant, order } = { ...OWNER, order: "sequence" as const, ...key };
    const lane = await this.store.lane(order === null ? { source, tenant, id: name } : { source, tenant, name, order });
    if (lane === null) throw new Error("There is no such lane.");
    return lane;
  }

  /** Events with their bodies. */
  async find(query: Partial<EventQuery> = {}): Promise<readonly WholeEvent[]> {
    return this.withBodies((await this.store.find({ order: "oldest", limit: 1_000, ...query })).items);
  }

  async withBodies(events: readonly EventSummary[]): Promise<readonly WholeEvent[]> {
    const ids = events.map(({ id }) => id);
    const bodies = await this.store.bodies(ids, Number.MAX_SAFE_INTEGER);
    return events.map((event) => ({ ...event, ...(bodies.get(event.id) ?? { raw: null, head: null }) }));
  }

  /** Rows of the quarantine with their bodies, newest first. */
  async quarantined(query: Partial<QuarantineQuery> = {}): Promise<readonly QuarantineRecord[]> {
    const { items } = await this.store.findQuarantined({ limit: 100, ...query });
    const rows = await Promise.all(items.map(({ id }) => this.store.quarantined(id)));
    return rows.filter((row) => row !== null);
  }

  /** The event with this sequence in message `m`. */
  async at(sequence: number, name = "m"): Promise<WholeEvent> {
    const { events } = await this.lane(name);
    return this.only(await this.withBodies(events.filter((event) => event.sequence === sequence)));
  }
}

/** A process with handlers of all types, and one without `onLate`. */
const takes: Takes = () => true;
export const recordsLate: Takes = (_lane, _type, late) => !late;

export function bytes(text: string): Uint8Array {
  return new TextEncoder().encode(text);
}

export function sha256Of(raw: Uint8Array): Uint8Array {
  return new Uint8Array(hash("sha256", raw, "buffer"));
}

/** Bytes in a form that every `expect` compares in the same way. */
export function hex(raw: Uint8Array | null): string | null {
  return raw === null ? null : Buffer.from(raw).toString("hex");
}

/** The sequences of leases or events, in their order. */
export function sequences(items: readonly { readonly sequence: number }[]): number[] {
  return items.map((item) => item.sequence);
}

export const DAY = 86_400_000;

/** How long the cases keep accepted events and bodies. */
export const POLICY: PrunePolicy = {
  handledBodiesMs: 7 * DAY,
  otherBodiesMs: 30 * DAY,
  identitiesMs: 30 * DAY,
  deadMs: 90 * DAY,
  batch: 1_000,
};
