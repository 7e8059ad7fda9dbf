/** Receivers in every mood, each with what it is asked: together they take every path on which something could be said. */
import { join } from "node:path";
import {
  type Answer,
  createReceiver,
  type DeliveryReport,
  type InboxStore,
  type IncomingWebhook,
  type Instrumentation,
  PermanentError,
  type Receiver,
  type ReceiverOptions,
  RetryAfter,
  type SecretSet,
} from "../../../src/index.ts";
import { memoryStore } from "../../../src/stores/memory.ts";
import { sqliteStore } from "../../../src/stores/sqlite.ts";
import { forward, passthrough } from "../../../src/tools/forward/index.ts";
import { createFakeClock, type FakeClock } from "../../../src/tools/testing/fake-clock.ts";
import type { Ears } from "./ears.ts";
import { MARKS, pick } from "./marks.ts";
import type { Signers } from "./requests.ts";
import { heardLogger } from "./watching.ts";

const HOUR_MS = 3_600_000;

export interface SceneTerms {
  readonly ears: Ears;
  readonly folder: string;
}

/** What takes requests. */
export interface Scene {
  readonly clock: Pick<FakeClock, "now" | "advance">;
  /** Watched while it runs, and asked for everything an operator could ask. */
  readonly receiver: Receiver<never> | null;
  handle(incoming: IncomingWebhook): Promise<Answer>;
  /** The secrets that requests are signed with, as of now. */
  signers(): Signers;
  /** Called between batches. */
  between?(batch: number): void;
}

export const SCENES: Readonly<Record<string, (terms: SceneTerms) => Scene>> = {
  "handlers fail": handlersFail,
  "answers wait for handlers": answersWait,
  "answers wait for handlers, in memory": answersWaitInMemory,
  "the store fails": storeFails,
  "the vault fails": vaultFails,
  "secrets rotate": secretsRotate,
  "the engine behind forward fails": forwardFails,
  "the engine behind passthrough fails": passthroughFails,
  "the default log": defaultLog,
};

const SIGNERS: Signers = {
  current: pick(MARKS.secrets, 0),
  previous: pick(MARKS.secrets, 1),
  next: pick(MARKS.secrets, 2),
};

function handlersFail(terms: SceneTerms): Scene {
  return sceneOf(terms, (receiver) => {
    failingHandlers(receiver);
    const fail = (notice: unknown) =>
      Promise.reject(new Error(`${pick(MARKS.remarks, 0)} ${pick(MARKS.numbers, 3)}`, { cause: errorIn(notice) }));
    receiver.onConflict(fail).onError(fail).onDeadLetter(fail);
  });
}

function answersWait(terms: SceneTerms): Scene {
  return sceneOf(terms, failingHandlers, { ack: "handled" });
}

function answersWaitInMemory(terms: SceneTerms): Scene {
  const store = memoryStore({ volatile: true, maxEvents: 1_000_000 });
  return sceneOf(terms, failingHandlers, { store });
}

function storeFails({ ears, folder }: SceneTerms): Scene {
  const { store, faults } = failingStore(fileStore(folder, "failing"));
  const scene = sceneOf({ ears, folder }, (receiver) => void receiver.onAny(() => {}).onLate(() => {}), { store });
  const between = (batch: number) => {
    faults.on = batch % 3 === 1;
  };
  return { ...scene, between };
}

function vaultFails(terms: SceneTerms): Scene {
  let calls = 0;
  const secrets = async () => {
    calls += 1;
    if (calls % 2 === 1) throw new Error(`vault: ${pick(MARKS.details, 0)} ${pick(MARKS.secrets, 3)}`);
    return secretSet(SIGNERS);
  };
  return sceneOf(terms, (receiver) => void receiver.onAny(() => {}), { secrets });
}

function secretsRotate(terms: SceneTerms): Scene {
  let turn = 0;
  const signers = (): Signers => ({
    current: pick(MARKS.secrets, turn + 1),
    previous: pick(MARKS.secrets, turn),
    next: pick(MARKS.secrets, turn + 2),
  });
  const secrets = async () => secretSet(signers());
  const scene = sceneOf(terms, (receiver) => void receiver.onAny(() => {}), { secrets });
  // The last secret is nobody's.
  const between = (batch: number) => {
    turn = Math.floor(batch / 4) % 7;
  };
  return { ...scene, signers, between };
}

function forwardFails(terms: SceneTerms): Scene {
  return sceneOf(terms, (receiver) => {
    const handler = forward(({ body }) =>
      Promise.reject(new Error(`broker: ${pick(MARKS.remarks, 1)} ${personalIn(body)}`)),
    );
    receiver.onAny(handler as never).onLate(handler as never);
  });
}

function passthroughFails({ ears }: SceneTerms): Scene {
  // It knows no clock but the system's.
  const clock = { now: () => Date.now(), advance: async () => {} };
  let published = 0;
  const intake = passthrough({
    ...{ secrets: pick(MARKS.secrets, 0), logger: heardLogger(ears), duplicates: "consumers" },
    publisher: async ({ body }) => {
      published += 1;
      if (published % 2 === 0) throw new Error(`broker: ${pick(MARKS.remarks, 2)} ${personalIn(body)}`);
    },
  });
  return { clock, receiver: null, handle: (incoming) => intake.handle(incoming), signers: () => SIGNERS };
}

/** The error that a hook was told of. */
function errorIn(notice: unknown): unknown {
  return (notice as { readonly error?: unknown }).error;
}

/** What an error that quotes an event says of a person. */
function personalIn(body: Uint8Array): string {
  const { data } = JSON.parse(Buffer.from(body).toString()) as { data: Record<string, unknown> };
  return JSON.stringify([data.from, data.to, data.body]);
}

/** The logger that is there when the application gives none writes to standard error. */
function defaultLog({ folder }: SceneTerms): Scene {
  const clock = createFakeClock();
  const store = fileStore(folder, "default-log");
  const receiver = createReceiver<never>({ secrets: secretSet(SIGNERS), store, clock, maxAttempts: 2 });
  failingHandlers(receiver);
  return { clock, receiver, handle: (incoming) => receiver.handle(incoming), signers: () => SIGNERS };
}

function sceneOf(
  { ears, folder }: SceneTerms,
  register: (receiver: Receiver<never>) => void,
  options: Partial<ReceiverOptions<never>> = {},
): Scene {
  const clock = createFakeClock();
  const receiver = createReceiver<never>({
    ...{
      secrets: secretSet(SIGNERS),
      clock,
      logger: heardLogger(ears),
      logEvents: true,
      maxAttempts: 2,
      gapWait: "eager",
    },
    store: options.store ?? fileStore(folder, `inbox-${scenes++}`),
    ...options,
  });
  register(receiver);
  return { clock, receiver, handle: (incoming) => receiver.handle(incoming), signers: () => SIGNERS };
}

let scenes = 0;

/** No scene has effects of its own. */
function fileStore(folder: string, name: string): InboxStore<never> {
  return sqliteStore(join(folder, `${name}.db`)) as unknown as InboxStore<never>;
}

function secretSet({ current, previous, next }: Signers): SecretSet {
  return { current, previous: { secret: previous, validUntil: createFakeClock().now() + 24 * HOUR_MS }, next };
}

/** Handlers that fail in every way, and say in their errors what they should not. */
function failingHandlers(receiver: Receiver<never>): void {
  let count = 0;
  receiver.on("message.inbound", ({ data }, ctx) => {
    count += 1;
    ctx.log.info({ attempt: ctx.attempt }, "A handler of the application.");
    if (count % 3 === 0) throw new Error(`No customer ${data.from} for ${JSON.stringify(data.body)}`);
    // The runtime quotes a part of it.
    if (count % 3 === 1) JSON.parse(data.body);
  });
  receiver.on("message.queued", ({ data }) => Promise.reject(new RetryAfter(5, `Busy with ${data.to}.`)));
  receiver.on("message.delivery", async ({ data }) => {
    await null;
    throw Object.assign(new TypeError(data.to), { code: codeWith(pick(MARKS.numbers, count), count) });
  });
  receiver.on("message.failed", ({ data }) => {
    throw new PermanentError(`Blocked: ${data.to.replace(/(\d{3})/g, "$1 ")}`);
  });
  receiver.onLate(({ data }) => {
    throw { message: `late ${JSON.stringify((data as { to?: unknown }).to)}` };
  });
}

/** A code that holds a number, as it is or in groups. */
function codeWith(number: string, turn: number): string {
  const separator = pick(["-", ".", "_"], turn);
  return turn % 2 === 0 ? number : number.replace(/^\+1(\d{3})(\d{3})/, `to_$1${separator}$2${separator}`);
}

/** Fails as a driver does, whose message may hold what was to be written. */
function failingStore<Tx>(store: InboxStore<Tx>): { store: InboxStore<Tx>; faults: { on: boolean } } {
  const faults = { on: false };
  const failing = <T>(work: () => Promise<T>, detail: string) =>
    faults.on ? Promise.reject(Object.assign(new Error(detail), { code: "SQLITE_FULL" })) : work();
  return {
    faults,
    store: {
      ...store,
      step: (turn) =>
        failing(
          () => store.step(turn),
          `insert into x values ('${pick(MARKS.details, 1)}', '${pick(MARKS.numbers, 0)}')`,
        ),
      stats: () => failing(() => store.stats(), pick(MARKS.details, 2)),
      heartbeat: (beat) => failing(() => store.heartbeat(beat), pick(MARKS.details, 2)),
    },
  };
}

/** Counts the ends of deliveries and attempts, so that a path which was not taken is noticed. */
export class Paths implements Instrumentation {
  readonly taken = new Map<string, number>();

  delivery() {
    return { ended: ({ outcome, status }: DeliveryReport) => this.#take(`${outcome} ${status}`) };
  }

  attempt() {
    return { ended: ({ ending }: { ending: string }) => this.#take(`attempt ${ending}`) };
  }

  #take(path: string): void {
    this.taken.set(path, (this.taken.get(path) ?? 0) + 1);
  }
}
