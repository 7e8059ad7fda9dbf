/** The receiver's options: documented, validated, with defaults. */
import { SetupError } from "../errors.ts";
import type { FlowKey, FlowLimits } from "../inbox/flow.ts";
import { DEFAULT_MAX_ATTEMPTS } from "../inbox/gap.ts";
import type { OnDead } from "../inbox/record.ts";
import type { InboxStore } from "../inbox/store.ts";
import { type Clock, type Random, systemClock, systemRandom } from "../internal/clock.ts";
import { type Logger, loggerOption, stderrInfoLogger, stderrLogger } from "../internal/logger.ts";
import {
  booleanOption,
  choiceOption,
  invalidOption,
  isRecord,
  numberOption,
  refuseUnknownOptions,
} from "../internal/options.ts";
import { isDevelopment } from "../internal/process.ts";
import type { AlertOptions, AlertRoute } from "./alerts.ts";

const DAY_MS = 86_400_000;

/** The options of a receiver that hold for all its sources. */
export interface CommonOptions<Tx = unknown> {
  /** Where events are kept: `sqliteStore("inbox.db")`. */
  readonly store: InboxStore<Tx>;
  /** The application that the inbox belongs to. Another name on the same inbox is refused. 1 to 64 characters. Default `"default"`. */
  readonly name?: string;
  /**
   * When the 2xx is sent: after the event is stored (default with a durable store), or after its handlers succeeded
   * (default, and the only choice, with a store that is not durable) (RCV-3, RCV-5).
   */
  readonly ack?: "stored" | "handled";
  /**
   * Handlers that run at once in this process, fewer while bodies have 16 MiB together. 1 to 1,000. Default 8. As an object it also bounds how many run for one source or one key, such
   * as a customer: `{ each: 2, per: "source" }`.
   */
  readonly concurrency?: number | ConcurrencyOptions;
  /**
   * How many handlers start in a second, in all processes of the inbox together: so that a backlog or a replay does not overrun the API
   * behind them. They start at even distances, and keys take turns. Default: no limit.
   */
  readonly rate?: RateOptions;
  /**
   * When a handler's `ctx.signal` aborts, milliseconds. 10 to 3,600,000. Default 30,000. The attempt then fails when the handler ends,
   * or 30 s later at the latest. Until then its message waits.
   */
  readonly handlerTimeoutMs?: number;
  /** How long a worker that died keeps its leases, milliseconds. Renewed after a third. 1,000 to 3,600,000. Default 30,000. */
  readonly leaseMs?: number;
  /** Attempts before an event becomes a dead letter. 1 to 100. Default 12, over 12 to 24 hours. */
  readonly maxAttempts?: number;
  /** Whether a message continues after its dead letter (default), or is blocked until an operator acts. */
  readonly onDead?: OnDead;
  /** A correctly signed body that is not a valid event is kept and answered 200 (default), or answered 400. */
  readonly quarantine?: "store" | "reject";
  /** How long events are kept. */
  readonly retention?: RetentionOptions;
  /** Reports dead letters, old events and other conditions that need a person. Default: reports nothing. */
  readonly alerts?: AlertOptions;
  /** `"check"` refuses to open an inbox that needs a migration. Default `"auto"`. */
  readonly migrate?: "auto" | "check";
  /** Default: warnings and errors to standard error, one JSON object per line; in development, lines to read. */
  readonly logger?: Logger;
  /**
   * Logs each accepted and each handled event at level info. Default: in development, when `NODE_ENV` is `development`, or is not set and
   * standard error is a terminal.
   */
  readonly logEvents?: boolean;
  /** For tests: `createFakeClock()` of `oncehook/testing`. */
  readonly clock?: Clock;
  /** For tests. */
  readonly random?: Random;
}

/** How many handlers run at once in one process. */
export interface ConcurrencyOptions {
  /** All together. 1 to 1,000. Default 8. */
  readonly total?: number;
  /** Of one key. 1 to 1,000. */
  readonly each: number;
  /** What has a key of its own: each source, or what the function returns for an event. */
  readonly per: "source" | FlowKey;
}

/** How many handlers start in a second. */
export interface RateOptions {
  /** Of one key. 0.01 to 10,000 events per second. */
  readonly perSecond: number;
  /**
   * What has a rate of its own: the inbox, each source, or what the function returns for an event, such as its customer. Default
   * `"inbox"`.
   */
  readonly per?: "inbox" | "source" | FlowKey;
}

export interface ResolvedReceiverOptions<Tx> {
  readonly store: InboxStore<Tx>;
  readonly name: string;
  readonly ack: "stored" | "handled";
  /** How long one delivery can be replayed, milliseconds. */
  readonly toleranceMs: number;
  readonly concurrency: number;
  /** Null without limits by key. */
  readonly flow: FlowLimits | null;
  readonly handlerTimeoutMs: number;
  readonly leaseMs: number;
  readonly maxAttempts: number;
  readonly onDead: OnDead;
  readonly quarantine: "store" | "reject";
  readonly retention: Retention;
  readonly alerts: AlertRoute | null;
  readonly migrate: "auto" | "check";
  readonly logger: Logger;
  readonly logEvents: boolean;
  readonly clock: Clock;
  readonly random: Random;
}

export const COMMON_OPTIONS = [
  "store",
  "name",
  "ack",
  "concurrency",
  "rate",
  "handlerTimeoutMs",
  "leaseMs",
  "maxAttempts",
  "onDead",
  "quarantine",
  "retention",
  "alerts",
  "migrate",
  "logger",
  "logEvents",
  "clock",
  "random",
] as const satisfies readonly (keyof CommonOptions)[];

/** @throws SetupError for anything but a store */
export function checkStore(store: unknown): void {
  if (typeof (store as InboxStore | undefined)?.step === "function") return;
  throw invalidOption("store", 'must be a store, such as sqliteStore("inbox.db") from oncehook/sqlite', store);
}

/** What the sources of a receiver decide, and how its alerts are sent. */
export type SourceRules = Pick<ResolvedReceiverOptions<unknown>, "toleranceMs" | "alerts">;

/** @throws SetupError naming the option and the fix */
export function resolveReceiverOptions<Tx>(
  options: CommonOptions<Tx>,
  { toleranceMs, alerts }: SourceRules,
): ResolvedReceiverOptions<Tx> {
  const { store } = options;
  const logEvents = booleanOption("logEvents", options.logEvents, isDevelopment());
  return {
    store,
    toleranceMs,
    name: nameOption(options.name),
    ack: ackOption(options.ack, store.capabilities.durable),
    ...flowOptions(options),
    handlerTimeoutMs: numberOption("handlerTimeoutMs", options.handlerTimeoutMs, 30_000, {
      min: 10,
      max: 3_600_000,
      unit: "ms",
    }),
    leaseMs: numberOption("leaseMs", options.leaseMs, 30_000, { min: 1_000, max: 3_600_000, unit: "ms" }),
    maxAttempts: numberOption("maxAttempts", options.maxAttempts, DEFAULT_MAX_ATTEMPTS, {
      min: 1,
      max: 100,
      unit: "attempts",
    }),
    onDead: choiceOption("onDead", options.onDead, "continue", ["continue", "block"]),
    quarantine: choiceOption("quarantine", options.quarantine, "store", ["store", "reject"]),
    retention: retentionOption(options.retention, toleranceMs),
    alerts,
    migrate: choiceOption("migrate", options.migrate, "auto", ["auto", "check"]),
    logger: loggerOption(options.logger, logEvents ? stderrInfoLogger : stderrLogger),
    logEvents,
    clock: options.clock ?? systemClock,
    random: options.random ?? systemRandom,
  };
}

const HANDLERS = { min: 1, max: 1_000, unit: "handlers" } as const;

function flowOptions({
  concurrency,
  rate,
}: Pick<CommonOptions, "concurrency" | "rate">): Pick<ResolvedReceiverOptions<never>, "concurrency" | "flow"> {
  const limits = { rate: rateLimit(rate), concurrency: concurrencyLimit(concurrency) };
  const flow = limits.rate === null && limits.concurrency === null ? null : limits;
  if (!isRecord(concurrency)) return { concurrency: numberOption("concurrency", concurrency, 8, HANDLERS), flow };
  return { concurrency: numberOption("concurrency.total", concurrency.total, 8, HANDLERS), flow };
}

function concurrencyLimit(given: CommonOptions["concurrency"]): FlowLimits["concurrency"] {
  if (!isRecord(given)) return null;
  refuseUnknownOptions("concurrency", given, ["total", "each", "per"]);
  const { each, per } = given as unknown as ConcurrencyOptions;
  if (each === undefined) throw invalidOption("concurrency.each", "must say how many handlers of one key run at once");
  return {
    each: numberOption("concurrency.each", each, 1, HANDLERS),
    per: typeof per === "function" ? per : keyOption("concurrency.per", per, ["source"]),
  };
}

function rateLimit(given: RateOptions | undefined): FlowLimits["rate"] {
  if (given === undefined) return null;
  refuseUnknownOptions("rate", given, ["perSecond", "per"]);
  const { perSecond, per = "inbox" } = given;
  if (perSecond === undefined) throw invalidOption("rate.perSecond", "must say how many handlers start in a second");
  return {
    perSecond: numberOption("rate.perSecond", perSecond, 1, {
      min: 0.01,
      max: 10_000,
      unit: "events per second",
      integer: false,
    }),
    per: typeof per === "function" ? per : keyOption("rate.per", per, ["inbox", "source"]),
  };
}

function keyOption<const T extends string>(name: string, value: unknown, choices: readonly T[]): T {
  const found = choices.find((choice) => choice === value);
  if (found !== undefined) return found;
  const list = choices.map((choice) => `"${choice}"`).join(", ");
  throw invalidOption(name, `must be ${list}, or a function that returns the key of an event`, value);
}

function nameOption(value: unknown): string {
  if (value === undefined) return "default";
  if (typeof value === "string" && value.length >= 1 && value.length <= 64) return value;
  throw invalidOption("name", "must be a string of 1 to 64 characters", value);
}

function ackOption(value: unknown, durable: boolean): "stored" | "handled" {
  const ack = choiceOption("ack", value, durable ? "stored" : "handled", ["stored", "handled"]);
  if (ack === "handled" || durable) return ack;
  throw new SetupError(
    "invalid_option",
    'ack: "stored" needs a durable store, or a crash after the 2xx loses the event: use sqliteStore, or ack: "handled".',
  );
}

/** Milliseconds, 0 to 10 years. */
export interface RetentionOptions {
  /** Bodies of handled events. Default 7 days. */
  readonly handledBodiesMs?: number;
  /** Bodies of late and unhandled events. Default 30 days. */
  readonly otherBodiesMs?: number;
  /** Identities, by which duplicates are recognised. At least the tolerance plus a day. Default 30 days. */
  readonly identitiesMs?: number;
  /** Dead letters and quarantined bodies without an operator's act. At least the tolerance plus a day. Default 90 days. */
  readonly deadMs?: number;
}

export type Retention = Required<RetentionOptions>;

/**
 * @param toleranceMs - past and future tolerance together: how long one delivery can be replayed
 * @throws SetupError for a time out of bounds, or below the floor
 */
export function retentionOption(value: RetentionOptions | undefined, toleranceMs: number): Retention {
  if (value !== undefined)
    refuseUnknownOptions("retention", value, ["handledBodiesMs", "otherBodiesMs", "identitiesMs", "deadMs"]);
  const bounds = { min: 0, max: 3_650 * DAY_MS, unit: "ms" };
  const shortest = toleranceMs + DAY_MS;
  const retention = {
    handledBodiesMs: numberOption("retention.handledBodiesMs", value?.handledBodiesMs, 7 * DAY_MS, bounds),
    otherBodiesMs: numberOption("retention.otherBodiesMs", value?.otherBodiesMs, 30 * DAY_MS, bounds),
    identitiesMs: numberOption("retention.identitiesMs", value?.identitiesMs, 30 * DAY_MS, bounds),
    deadMs: numberOption("retention.deadMs", value?.deadMs, 90 * DAY_MS, bounds),
  };
  for (const name of ["identitiesMs", "deadMs"] as const) {
    if (retention[name] >= shortest) continue;
    throw invalidOption(
      `retention.${name}`,
      `must be at least ${shortest} ms (tolerance plus a day), or a delivery replayed within the tolerance would be handled again`,
      retention[name],
    );
  }
  return retention;
}
