/** What the receiver's tests stand on: a receiver on a fake clock, signed deliveries, a recorded log and a store that can fail. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { onTestFinished } from "vitest";
import {
  type Answer,
  type BodyResult,
  createReceiver,
  type InboxStore,
  type IncomingWebhook,
  type LogFields,
  type Logger,
  type Receiver,
  type ReceiverOptions,
  type SignOptions,
  signPayload,
  type Turn,
} from "../../src/index.ts";
import { memoryStore } from "../../src/stores/memory.ts";
import { type SqliteDatabase, sqliteStore } from "../../src/stores/sqlite.ts";
import { createFakeClock, type FakeClock } from "../../src/tools/testing/fake-clock.ts";

export const SECRET = "a-webhook-signing-secret-of-32-b";
export const MINUTE = 60_000;
export const HOUR = 60 * MINUTE;
export const DAY = 24 * HOUR;

/** How one delivery differs from the ordinary one. */
export interface Wish extends Partial<Pick<SignOptions, "secret" | "encoding" | "unit">> {
  /** The timestamp; default now. A text is taken as it is. */
  readonly at?: number | string;
  readonly method?: string;
  /** Laid over the signed ones; undefined removes one. */
  readonly headers?: Readonly<Record<string, string | readonly string[] | undefined>>;
  readonly unsigned?: boolean;
  readonly tenant?: string;
  readonly route?: string;
  readonly readBody?: IncomingWebhook["readBody"];
}

export interface LogLine {
  readonly level: "debug" | "info" | "warn" | "error";
  readonly fields: LogFields;
  readonly message: string;
}

export interface Bench<Tx> {
  readonly clock: FakeClock;
  readonly log: LogLine[];
  readonly logger: Logger;
  readonly store: FaultyStore<Tx>;
  readonly receiver: Receiver<Tx>;
  deliver(body: string | Uint8Array, wish?: Wish): Promise<Answer>;
  /** The codes of the lines so far. */
  codes(): unknown[];
}

export type BenchOptions<Tx> = Partial<ReceiverOptions<Tx>>;

export function memoryBench(options: BenchOptions<never> = {}): Bench<never> {
  return makeBench(memoryStore({ volatile: true }), options);
}

/** On a real file, in the default mode `ack: "stored"`. */
export function sqliteBench(
  options: BenchOptions<SqliteDatabase> = {},
  file = newInboxFile(),
): Bench<SqliteDatabase> & { readonly file: string } {
  return { ...makeBench(sqliteStore(file), options), file };
}

export function newInboxFile(): string {
  const folder = mkdtempSync(join(tmpdir(), "oncehook-receiver-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  return join(folder, "inbox.db");
}

export function makeBench<Tx>(store: InboxStore<Tx>, options: BenchOptions<Tx> = {}): Bench<Tx> {
  const clock = (options.clock as FakeClock | undefined) ?? createFakeClock();
  const { log, logger } = recordedLog();
  const faulty = faultyStore(options.store ?? store);
  const receiver = createReceiver<Tx>({ secrets: SECRET, clock, logger, random: () => 0.5, ...options, store: faulty });
  onTestFinished(() => stopNow(receiver, clock, faulty));
  return {
    clock,
    log,
    logger,
    store: faulty,
    receiver,
    deliver: (body, wish = {}) => receiver.handle(incoming(body, clock.now(), wish)),
    codes: () => log.map(({ fields }) => fields.code),
  };
}

/** Stops even what hangs: the clock moves until the stop is through. */
async function stopNow<Tx>(receiver: Receiver<Tx>, clock: FakeClock, store?: FaultyStore<Tx>): Promise<void> {
  store?.faults.clear();
  const failures: unknown[] = [];
  let stopping = true;
  const stopped = receiver.stop({ timeoutMs: 0 }).then(
    () => {
      stopping = false;
    },
    (error: unknown) => {
      stopping = false;
      failures.push(error);
    },
  );
  for (let seconds = 0; stopping && seconds < 120; seconds++) await clock.advance(1_000);
  if (stopping) throw new Error("stop() hangs.");
  await stopped;
  if (failures.length > 0) throw failures[0];
}

export function incoming(body: string | Uint8Array, now: number, wish: Wish = {}): IncomingWebhook {
  const bytes = Buffer.from(body as Uint8Array);
  const { secret = SECRET, at = now, encoding, unit, method = "POST", tenant, route } = wish;
  const signed = wish.unsigned
    ? {}
    : signPayload({ body: bytes, secret, timestamp: at, ...(encoding && { encoding }), ...(unit && { unit }) });
  const readAll: IncomingWebhook["readBody"] = (reading): BodyResult => {
    reading.received(bytes.length);
    return { ok: true, bytes };
  };
  return {
    method,
    headers: { ...signed, ...wish.headers },
    readBody: wish.readBody ?? readAll,
    ...(tenant !== undefined && { tenant }),
    ...(route !== undefined && { route }),
  };
}

/** A promise to be settled by hand. */
export function deferred<T = void>(): Deferred<T> {
  let resolve: (value: T) => void = () => {};
  let reject: (error: unknown) => void = () => {};
  const promise = new Promise<T>((done, failed) => {
    resolve = done;
    reject = failed;
  });
  return { promise, resolve, reject };
}

export interface Deferred<T> {
  readonly promise: Promise<T>;
  readonly resolve: (value: T) => void;
  readonly reject: (error: unknown) => void;
}

/** Lets the event loop turn until `holds`; the clock stands still. */
export async function until(holds: () => boolean | Promise<boolean>, what = "what was waited for"): Promise<void> {
  for (let turn = 0; turn < 2_000; turn++) {
    if (await holds()) return;
    await new Promise<void>((resolve) => setImmediate(resolve));
  }
  throw new Error(`It did not come: ${what}.`);
}

/** Some turns of the event loop, for what should not happen. */
export async function idleTurns(count = 20): Promise<void> {
  for (let turn = 0; turn < count; turn++) await new Promise<void>((resolve) => setImmediate(resolve));
}

export function recordedLog(): { log: LogLine[]; logger: Logger } {
  const log: LogLine[] = [];
  const at = (level: LogLine["level"]) => (fields: LogFields, message: string) => {
    log.push({ level, fields, message });
  };
  return { log, logger: { debug: at("debug"), info: at("info"), warn: at("warn"), error: at("error") } };
}

/** A real store with a switch for each fault. */
export type FaultyStore<Tx> = InboxStore<Tx> & { readonly faults: Faults };

export interface Faults {
  /** The turns that reached the store, also those that then failed. */
  readonly turns: Turn<never>[];
  /** Each step rejects with it, nothing done. */
  step: Error | null;
  /** The next step commits, and then rejects with it. */
  afterStep: Error | null;
  /** The next step that claims one lane commits, and then rejects with it. */
  afterClaim: Error | null;
  /** The next act is done, and then rejects with it. */
  afterAct: Error | null;
  open: Error | null;
  /** Everything an operator or a health route asks. */
  reads: Error | null;
  /** Steps wait for it before they begin. */
  gate: Promise<unknown> | null;
  /** Turns that wrote an accept, a quarantine or a settle. */
  writes(): number;
  clear(): void;
}

const NONE = { step: null, afterStep: null, afterClaim: null, afterAct: null, open: null, reads: null, gate: null };

function faultyStore<Tx>(store: InboxStore<Tx>): FaultyStore<Tx> {
  const turns: Turn<never>[] = [];
  const faults: Faults = {
    turns,
    ...NONE,
    writes: () =>
      turns.filter((turn) => turn.accepts.length + turn.quarantines.length + turn.settles.length > 0).length,
    clear: () => Object.assign(faults, NONE),
  };
  const reading = <T>(read: () => Promise<T>) => (faults.reads === null ? read() : Promise.reject(faults.reads));
  return {
    ...store,
    faults,
    open: (context) => (faults.open === null ? store.open(context) : Promise.reject(faults.open)),
    async step(turn) {
      turns.push(turn as Turn<never>);
      if (faults.gate !== null) await faults.gate;
      if (faults.step !== null) throw faults.step;
      const result = await store.step(turn);
      const { afterStep } = faults;
      faults.afterStep = null;
      if (afterStep !== null) throw afterStep;
      const { afterClaim } = faults;
      if (afterClaim !== null && turn.claim.lane !== undefined) {
        faults.afterClaim = null;
        throw afterClaim;
      }
      return result;
    },
    async act(act, by) {
      const result = await store.act(act, by);
      const { afterAct } = faults;
      faults.afterAct = null;
      if (afterAct !== null) throw afterAct;
      return result;
    },
    stats: () => reading(() => store.stats()),
    heartbeat: (beat) => reading(() => store.heartbeat(beat)),
    prune: (policy) => reading(() => store.prune(policy)),
    nextDue: () => reading(() => store.nextDue()),
  };
}
