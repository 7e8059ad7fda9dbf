/** Options of `createEmulator()`: validate, then default. */
import { type Clock, systemClock } from "../internal/clock.ts";
import { type Logger, loggerOption } from "../internal/logger.ts";
import {
  booleanOption,
  choiceOption,
  invalidOption,
  numberOption,
  refuseUnknownOptions,
  textOption,
} from "../internal/options.ts";
import { type ClockMode, rateOf } from "./clock.ts";
import { type FaultRule, faultRuleFrom, type ParsedFaultRule } from "./faults/rule.ts";
import { isHttpUrl } from "./http-url.ts";
import { listeningFrom } from "./listening.ts";
import { PROFILE_NAMES, PROFILES, type Profile, type ProfileName } from "./profiles.ts";
import { seededHex } from "./random.ts";
import { type Readings, readingsFrom } from "./unspecified.ts";

export type Lifecycle = "instant" | "realistic" | "manual";

export interface EmulatorOptions {
  /** TCP port, 0 to 65,535; 0 picks a free one, `null` opens none: then only `handle` serves. Default 0. */
  readonly port?: number | null;
  /** Address to listen on. Beyond loopback a `controlToken` and a `seed` are required. Default `"127.0.0.1"`. */
  readonly host?: string;
  /** A path before every route, such as `"/sms"` (GEN-13). Default none. */
  readonly basePath?: string;
  /**
   * Decides every secret and chance, and with the instant at which the emulator's time starts every id: the same seed, start and
   * calls repeat exactly. Emulators that feed one receiver need different seeds. Default `"oncehook"`.
   */
  readonly seed?: string;
  /** How time goes. Default `"virtual"`: it moves by `clock.advance()` only. */
  readonly clock?: ClockMode;
  /** Where the emulator's time starts, epoch ms. Default: 1 January 2026 for a virtual clock, otherwise now. */
  readonly startAt?: number;
  /** The real clock behind it. Default: the system's. */
  readonly systemClock?: Clock;
  /**
   * Whose time signatures carry. `"real"`: the real clock's, less the age that a frozen signature has on the emulator's, so that
   * receivers on the real clock accept them however far the emulator's time was moved. `"emulator"`: the emulator's. Default `"real"`.
   */
  readonly timestampClock?: "emulator" | "real";
  /** A SQLite file that keeps the state, made when absent; needs better-sqlite3 or Node 22.13. Default: in memory. */
  readonly state?: string;
  /**
   * Ended messages kept, with their events, and API calls logged: 1 to 10,000,000. Default 100,000. Idempotency keys are kept for
   * 24 h, and no more than this or 10,000, whichever is more.
   */
  readonly keep?: number;
  /** Default `"default"`. */
  readonly profile?: ProfileName;
  /** Other readings of what the specification does not show; see docs/emulator.md. They go before the profile's. */
  readonly unspecified?: Partial<Readings>;
  /** `"realistic"`: sent within 2 s, ended within 10 s. `"instant"`: all at once. `"manual"`: by the control API. Default `"realistic"`. */
  readonly lifecycle?: Lifecycle;
  /** Whether the magic recipients behave as documented. Default true. */
  readonly magic?: boolean;
  /** Fault rules, besides the profile's. */
  readonly faults?: readonly FaultRule[];
  /** The main client's own id and secret. Default: `"client_main"`, and a secret that the seed decides. */
  readonly clientId?: string;
  readonly clientSecret?: string;
  /** Default webhook targets of the main client, enabled and signed from the start. */
  readonly inboundUrl?: string;
  readonly deliveryUrl?: string;
  /** The secret they are signed with. Default: one that the seed decides. */
  readonly webhookSecret?: string;
  /** Asked for by the control API as `Authorization: Bearer …`. Default: none on loopback. */
  readonly controlToken?: string;
  /** Private networks in CIDR notation that webhooks may reach, besides loopback. Default none. */
  readonly allowPrivateTargets?: readonly string[];
  /** Let webhooks reach public addresses. Default false. */
  readonly allowPublicTargets?: boolean;
  /** Real milliseconds an attempt may take, 1 to 600,000. Default 10,000 (DLV-19). */
  readonly attemptTimeoutMs?: number;
  /** Default: warnings and errors to standard error. */
  readonly logger?: Logger;
}

/** Options, checked and complete. */
export interface Settings {
  readonly port: number | null;
  readonly host: string;
  readonly basePath: string;
  readonly seed: string;
  readonly clock: ClockMode;
  readonly startAt: number | undefined;
  readonly systemClock: Clock;
  readonly timestampClock: "emulator" | "real";
  readonly state: string | undefined;
  readonly keep: number;
  readonly readings: Readings;
  readonly lifecycle: Lifecycle;
  readonly magic: boolean;
  readonly faults: readonly ParsedFaultRule[];
  readonly clientId: string;
  readonly clientSecret: string;
  readonly inboundUrl: string | undefined;
  readonly deliveryUrl: string | undefined;
  readonly webhookSecret: string;
  readonly controlToken: string | undefined;
  readonly allowPrivateTargets: readonly string[];
  readonly allowPublicTargets: boolean;
  readonly attemptTimeoutMs: number;
  readonly logger: Logger;
}

const NAMES: readonly (keyof EmulatorOptions)[] = [
  "port",
  "host",
  "basePath",
  "seed",
  "clock",
  "startAt",
  "systemClock",
  "timestampClock",
  "state",
  "keep",
  "profile",
  "unspecified",
  "lifecycle",
  "magic",
  "faults",
  "clientId",
  "clientSecret",
  "inboundUrl",
  "deliveryUrl",
  "webhookSecret",
  "controlToken",
  "allowPrivateTargets",
  "allowPublicTargets",
  "attemptTimeoutMs",
  "logger",
];

/** 2026-01-01T00:00:00Z. */
const VIRTUAL_START = 1_767_225_600_000;
const LATEST_START = 8_640_000_000_000_000;

/** @throws SetupError for a set-up mistake, with the fix in its message */
export function settingsFrom(options: EmulatorOptions): Settings {
  refuseUnknownOptions("createEmulator()", options, NAMES);
  const profile: Profile = PROFILES[choiceOption("profile", options.profile, "default", PROFILE_NAMES)];
  const listening = listeningFrom(options);
  const { seed } = listening;
  const clock = clockOption(options.clock);
  return {
    ...listening,
    clock,
    startAt:
      options.startAt === undefined
        ? clock === "virtual"
          ? VIRTUAL_START
          : undefined
        : numberOption("startAt", options.startAt, 0, { min: 0, max: LATEST_START, unit: "ms" }),
    systemClock: systemClockOption(options.systemClock),
    timestampClock: choiceOption("timestampClock", options.timestampClock, "real", ["emulator", "real"]),
    state: textOption("state", options.state),
    keep: numberOption("keep", options.keep, 100_000, { min: 1, max: 10_000_000, unit: "messages" }),
    readings: readingsFrom(options.unspecified, profile.unspecified),
    lifecycle: choiceOption("lifecycle", options.lifecycle, "realistic", ["instant", "realistic", "manual"]),
    magic: booleanOption("magic", options.magic, true),
    faults: [...profile.faults, ...listOption("faults", "fault rules", options.faults)].map((rule) =>
      faultRuleFrom(rule),
    ),
    clientId: clientIdOption(options.clientId),
    clientSecret: textOption("clientSecret", options.clientSecret) ?? seededHex(seed, "client secret: main", 24),
    inboundUrl: urlOption("inboundUrl", options.inboundUrl),
    deliveryUrl: urlOption("deliveryUrl", options.deliveryUrl),
    webhookSecret: textOption("webhookSecret", options.webhookSecret) ?? seededHex(seed, "webhook secret", 32),
    allowPrivateTargets: networksOption(options.allowPrivateTargets),
    allowPublicTargets: booleanOption("allowPublicTargets", options.allowPublicTargets, false),
    attemptTimeoutMs: numberOption("attemptTimeoutMs", options.attemptTimeoutMs, 10_000, {
      min: 1,
      max: 600_000,
      unit: "ms",
    }),
    logger: loggerOption(options.logger),
  };
}

/** The other clients that every emulator starts with. */
export const OTHER_CLIENT_IDS = {
  other: "client_other",
  inactive: "client_inactive",
  inactiveAccount: "client_inactive_account",
} as const;

function clientIdOption(value: unknown): string {
  const clientId = textOption("clientId", value) ?? "client_main";
  const others: readonly string[] = Object.values(OTHER_CLIENT_IDS);
  if (!others.includes(clientId)) return clientId;
  throw invalidOption("clientId", `must be none of the other clients' ids: ${others.join(", ")}`, value);
}

function clockOption(value: ClockMode = "virtual"): ClockMode {
  // It throws for what is none: here, before anything starts.
  rateOf(value);
  return value;
}

function systemClockOption(value: Clock = systemClock): Clock {
  const isComplete = (["now", "monotonic", "setTimeout"] as const).every((name) => typeof value?.[name] === "function");
  if (isComplete) return value;
  throw invalidOption("systemClock", "must have the methods now, monotonic and setTimeout", value);
}

function listOption<T>(name: string, what: string, value: readonly T[] = []): readonly T[] {
  if (Array.isArray(value)) return value;
  throw invalidOption(name, `must be a list of ${what}`, value);
}

function networksOption(value: readonly string[] | undefined): readonly string[] {
  const what = "networks in CIDR notation";
  const networks = listOption("allowPrivateTargets", what, value);
  if (networks.every((network) => typeof network === "string")) return networks;
  throw invalidOption("allowPrivateTargets", `must be a list of ${what}`, value);
}

function urlOption(name: string, value: unknown): string | undefined {
  if (value === undefined || isHttpUrl(value)) return value;
  throw invalidOption(name, "must be an http or https URL", value);
}
