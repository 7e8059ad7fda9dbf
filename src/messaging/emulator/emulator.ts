/** `createEmulator()`: the whole service on one port, or behind `handle` alone. */
import { setMaxListeners } from "node:events";
import { setImmediate } from "node:timers/promises";
import { numberOption } from "../../internal/options.ts";
import { createTime, type EmulatorClock, type EmulatorTime, seededFraction, seededHex } from "./clock.ts";
import { createControlApi } from "./control/api.ts";
import type { Control } from "./control/control.ts";
import { createControl, createWhole, requireOpen } from "./control/create-control.ts";
import { type ControlContext, createStreams } from "./control/routes.ts";
import { SOONEST_RETRY_MS } from "./delivery/attempt.ts";
import { createDeliveries } from "./delivery/deliveries.ts";
import { warnOfBlockedTargets } from "./delivery/egress.ts";
import { createFaults } from "./faults.ts";
import { withoutBody } from "./http/answers.ts";
import { handleApi } from "./http/api.ts";
import { CLOSED, type FetchHandler, type Listener, listen, refusalFor } from "./http/listener.ts";
import { placeOf, Router } from "./http/route.ts";
import { createMessages } from "./messages/messages.ts";
import { type EmulatorOptions, type Settings, settingsFrom, urlHostOf } from "./options.ts";
import { ROUTES } from "./routes/table.ts";
import { secretWarning } from "./routes/webhooks.ts";
import { Scheduler } from "./scheduler.ts";
import { type Fixtures, fixturesIn, seedState, webhookSecretIn } from "./seed.ts";
import { createJournal, type EmulatorParts, type Service } from "./service.ts";
import { Keeper } from "./state/keeper.ts";
import { createState, type State } from "./state/state.ts";

/** A running emulator of the service. */
export interface Emulator {
  /** The base address, without a slash at its end: `http://127.0.0.1:4010`. */
  readonly url: string;
  /** The main client's. */
  readonly apiClientId: string;
  readonly clientId: string;
  readonly clientSecret: string;
  /** The secret that `inboundUrl` and `deliveryUrl` are signed with. */
  readonly webhookSecret: string;
  readonly fixtures: Fixtures;
  /** Answers a request without a socket: with 503 once it has closed. A connection that breaks is `Response.error()`. */
  handle(request: Request): Promise<Response>;
  readonly clock: EmulatorClock;
  readonly control: Control;
  /** Ends the listener and what is under way. */
  close(): Promise<void>;
  [Symbol.asyncDispose](): Promise<void>;
}

/** Ten years. */
const LONGEST_ADVANCE_MS = 315_576_000_000;

/**
 * Starts an emulator. Each test can have its own: one is ready in milliseconds.
 *
 * @throws SetupError for a set-up mistake, a port in use, or an `import` that no emulator exported
 * @example
 * const emulator = await createEmulator({ deliveryUrl: "http://127.0.0.1:3000/webhooks" });
 * emulator.control.inbound({ to: emulator.fixtures.numbers.full, from: "+14155550123", body: "hello" });
 * await emulator.clock.advance(60_000);
 * await emulator.close();
 */
export async function createEmulator(options: EmulatorOptions = {}): Promise<Emulator> {
  const settings = settingsFrom(options);
  const startAt = settings.startAt ?? settings.systemClock.now();
  const time = createTime(settings.systemClock, settings.clock, startAt);
  const tag = seededHex(settings.seed, `ids since ${startAt}`, 3);
  const keeper = new Keeper(settings.keep);
  const state: State = createState((change) => keeper.onChange(change, state), tag);
  seedState(state, settings);
  if (settings.import === undefined) warnOfSeed(settings);
  const closing = new AbortController();
  // Each delayed call listens to it, and there may be thousands.
  setMaxListeners(0, closing.signal);
  const service = assemble(settings, state, { time, tag, closing: closing.signal });
  let closed: Promise<void> | undefined;
  const life: Life = { isClosed: false, settle: () => keeper.enforce(state) };
  const context: ControlContext = {
    service,
    control: createControl(service, { ...createWhole(service), isClosed: () => life.isClosed }),
    clock: clockOf(service, life),
    streams: createStreams(service),
  };
  const handle = handlerOf(context, life);
  let listener: Listener | null = null;
  const end = async () => {
    closing.abort();
    await endWork(context, listener);
    life.isClosed = true;
  };
  const close = () => {
    closed ??= end();
    return closed;
  };
  try {
    if (settings.port !== null) listener = await listen(handle, service, settings.port);
    // Not for an emulator that cannot listen; and before the first request, which comes with a later turn of the event loop.
    if (settings.import !== undefined) context.control.importState(settings.import);
    return publish(context, { handle, close, port: listener?.port });
  } catch (error) {
    await close();
    throw error;
  }
}

/** Whether the emulator has closed, and what brings its state back within the bounds. */
interface Life {
  isClosed: boolean;
  settle(): void;
}

function warnOfSeed(settings: Settings): void {
  warnOfBlockedTargets(settings);
  const shortness = secretWarning(settings.webhookSecret);
  if (shortness !== null) settings.logger.warn({}, shortness);
}

/** Callers first, then what is under way. */
async function endWork({ service, streams }: ControlContext, listener: Listener | null): Promise<void> {
  streams.close();
  await listener?.close();
  // An attempt that is cut off counts as not made: an import of what is exported now makes it at once.
  service.deliveries.close();
  await service.scheduler.close();
  // A turn of the event loop: calls without a socket that had only to wait for this come to their answers.
  await setImmediate();
}

/** When the emulator's time started, what that makes of its ids, and its end. */
interface Start {
  readonly time: EmulatorTime;
  readonly tag: string;
  readonly closing: AbortSignal;
}

function assemble(settings: Settings, state: State, { time, tag, closing }: Start): Service {
  const ground: EmulatorParts = {
    settings,
    state,
    time,
    scheduler: new Scheduler(settings.systemClock, time, {
      horizonMs: SOONEST_RETRY_MS,
      onFailure: reporter(settings),
    }),
    journal: createJournal(),
    closing,
    // The seed's alone: on the real clock, the tag is another one with each start.
    chance: (purpose) => seededFraction(settings.seed, purpose.replaceAll(`_${tag}_`, "_")),
  };
  const faults = createFaults(
    ground,
    ROUTES.map(({ method, path }) => `${method} ${path}`),
  );
  const deliveries = createDeliveries(ground, faults);
  return { ...ground, faults, deliveries, messages: createMessages(ground, deliveries, faults) };
}

/** Tells the log of a failure of the emulator's own that no caller can be told of. */
function reporter({ logger }: Settings): (error: unknown) => void {
  return (error) => {
    const reason = error instanceof Error ? error.message : String(error);
    logger.error({ reason }, "The emulator failed in something that was due.");
  };
}

/** What comes too late is refused, also when its work was done by then: nothing would follow from it. */
function handlerOf(context: ControlContext, life: Life): FetchHandler {
  const { service } = context;
  const router = new Router(ROUTES);
  const controlApi = createControlApi(context);
  const { basePath } = service.settings;
  return async (request) => {
    const place = placeOf(new URL(request.url).pathname, basePath);
    const told = (response: Response) => (request.method === "HEAD" ? withoutBody(response) : response);
    if (life.isClosed) return told(refusalFor(service, CLOSED, place.contract));
    const response =
      place.contract === "control"
        ? await controlApi(request, place.path)
        : await handleApi(service, router, request, place);
    if (life.isClosed) return told(refusalFor(service, CLOSED, place.contract));
    life.settle();
    return told(response);
  };
}

function clockOf({ time, scheduler }: Service, life: Life): EmulatorClock {
  return {
    now: () => time.now(),
    async advance(ms) {
      requireOpen(life.isClosed);
      await scheduler.advance(numberOption("ms", ms, 0, { min: 0, max: LONGEST_ADVANCE_MS, unit: "ms" }));
      life.settle();
    },
    async idle() {
      await scheduler.idle();
      life.settle();
    },
  };
}

interface Published {
  readonly handle: FetchHandler;
  readonly close: () => Promise<void>;
  readonly port: number | undefined;
}

function publish({ service, control, clock }: ControlContext, { handle, close, port }: Published): Emulator {
  const { settings, state } = service;
  const fixtures = fixturesIn(state, settings);
  return {
    url: `http://${urlHostOf(settings.host)}${port === undefined ? "" : `:${port}`}${settings.basePath}`,
    ...fixtures.clients.main,
    webhookSecret: webhookSecretIn(state, settings),
    fixtures,
    handle,
    clock,
    control,
    close,
    [Symbol.asyncDispose]: close,
  };
}
