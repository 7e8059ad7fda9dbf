/** Options of `createEmulator()`: validate, then default. */
import ipaddr from "ipaddr.js";
import { type Clock, systemClock } from "../../internal/clock.ts";
import { type Logger, loggerOption } from "../../internal/logger.ts";
import { isLoopback } from "../../internal/network.ts";
import {
  booleanOption,
  choiceOption,
  invalidOption,
  numberOption,
  refuseUnknownOptions,
  textOption,
} from "../../internal/options.ts";
import { type ClockMode, rateOf, seededHex } from "./clock.ts";
import { type FaultRule, faultRuleFrom, type ParsedFaultRule } from "./faults.ts";
import { type Readings, readingsFrom } from "./unspecified.ts";

/** When the events of a message happen: at once, with realistic pauses, or by `advanceMessage()` only. */
export type Lifecycle = "instant" | "realistic" | "manual";

/** A whole state as JSON. It holds secrets. */
export interface StateExport {
  readonly version: 1;
  /** Per table, its records by id. */
  readonly tables: Readonly<Record<string, Readonly<Record<string, unknown>>>>;
}

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
  /** What `control.exportState()` gave: it goes before the options that fill a new state. Default: the seed data. */
  readonly import?: StateExport;
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
  /** The main client's own id. Default `"client_main"`. */
  readonly clientId?: string;
  /** The main client's own secret. Default: one that the seed decides. */
  readonly clientSecret?: string;
  /** Where webhooks of inbound messages go by default: the main client's target, enabled and signed from the start. Default: nowhere. */
  readonly inboundUrl?: string;
  /** The same for events of outbound messages. Default: nowhere. */
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
  readonly import: StateExport | undefined;
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
  "import",
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
    import: options.import,
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

// The options that say where the emulator listens and which callers it accepts.

const DEFAULT_SEED = "oncehook";

/** Of `EmulatorOptions`, as callers without types may give them. */
type Given = Readonly<Record<"port" | "host" | "basePath" | "seed" | "controlToken", unknown>>;

/** The same, checked and complete. */
interface Listening {
  readonly port: number | null;
  readonly host: string;
  readonly basePath: string;
  readonly seed: string;
  readonly controlToken: string | undefined;
}

/** @throws SetupError for an option that does not fit, and for less than is needed beyond loopback */
function listeningFrom(options: Partial<Given>): Listening {
  const host = hostFrom(textOption("host", options.host) ?? "127.0.0.1");
  const seed = textOption("seed", options.seed) ?? DEFAULT_SEED;
  const controlToken = controlTokenOption(options.controlToken);
  if (!isLoopback(host)) refuseUnguarded(options);
  return {
    port:
      options.port === null
        ? null
        : numberOption("port", options.port, 0, { min: 0, max: 65_535, unit: "as a TCP port" }),
    host,
    basePath: basePathOption(options.basePath),
    seed,
    controlToken,
  };
}

function refuseUnguarded({ seed = DEFAULT_SEED, controlToken }: Partial<Given>): void {
  if (controlToken === undefined) {
    throw invalidOption(
      "controlToken",
      "is required when the emulator listens beyond loopback: its state holds secrets",
    );
  }
  if (seed === DEFAULT_SEED) {
    throw invalidOption(
      "seed",
      "is required when the emulator listens beyond loopback, and must be your own: the secrets of its clients come from it",
    );
  }
}

/** What a header carries unchanged: printable ASCII without spaces at its ends (RFC 9110, section 5.5). */
function controlTokenOption(value: unknown): string | undefined {
  const token = textOption("controlToken", value);
  if (token === undefined || /^[!-~](?:[ -~]*[!-~])?$/.test(token)) return token;
  throw invalidOption(
    "controlToken",
    "must be printable ASCII without spaces at its ends, since a header carries it",
    value,
  );
}

function basePathOption(value: unknown): string {
  const path = value === undefined ? "" : value;
  if (typeof path !== "string" || !/^(?:(?:\/[\w.~-]+)+)?\/*$/.test(path)) {
    throw invalidOption("basePath", 'must be a path such as "/sms"', value);
  }
  if (/\/\.\.?(?:\/|$)/.test(path)) {
    throw invalidOption("basePath", 'must be without "." and ".." between its slashes: no request keeps them', value);
  }
  return path.replace(/\/+$/, "");
}

// Hosts to listen on: read as addresses in one spelling, since many stand for the same one.

/**
 * The host as `listen` gets it: an address in its usual spelling (`0` is `0.0.0.0`, `::0` is `::`), or a name.
 *
 * @throws SetupError when it is neither
 */
function hostFrom(text: string): string {
  const bare = /^\[([\da-f:.]+)\]$/i.exec(text)?.[1] ?? text;
  if (ipaddr.isValid(bare)) return ipaddr.process(bare).toString();
  if (isName(text)) return text.toLowerCase();
  throw invalidOption("host", 'must be an IP address or a name, such as "127.0.0.1"', text);
}

/** A name whose last label is a number would be taken for an address by some resolvers, and not by others. */
function isName(text: string): boolean {
  return /^[a-z\d_-]+(?:\.[a-z\d_-]+)*\.?$/i.test(text) && !/(?:^|\.)(?:\d+|0x[\da-f]*)\.?$/i.test(text);
}

/** Whether a host, as `hostFrom` gives it, is every address of this machine. */
function isEverywhere(host: string): boolean {
  return host === "0.0.0.0" || host === "::";
}

/** What stands in a URL for a host that is listened on: an address that can be connected to; an IPv6 one goes in brackets. */
export function urlHostOf(host: string): string {
  if (host === "0.0.0.0") return "127.0.0.1";
  if (host === "::") return "[::1]";
  return host.includes(":") ? `[${host}]` : host;
}

// The profiles: what a receiver must pass before it is ready (`default`, `strict`, `hostile`).

/** The name of a profile. */
export type ProfileName = keyof typeof PROFILES;

/** What a profile sets; options of the emulator go before it. */
interface Profile {
  readonly unspecified: Partial<Readings>;
  readonly faults: readonly FaultRule[];
}

const PROFILES = {
  /** The choices of docs/spec/conformance.md, without faults. */
  default: { unspecified: {}, faults: [] },
  /** Rejects unknown request fields; otherwise as `default`. */
  strict: { unspecified: { unknownFields: "reject" }, faults: [] },
  /** All that a receiver may meet at its worst: old signatures, two secrets, other spellings, repeats, any order. */
  hostile: {
    unspecified: {
      retrySignature: "frozen",
      overlapSigning: "alternate",
      signatureEncoding: "base64",
      timestampUnit: "s",
      retryBody: "reserialised",
    },
    faults: [
      { match: { webhook: true }, action: { type: "duplicate" }, probability: 0.2 },
      { match: { webhook: true }, action: { type: "reorder" }, probability: 0.2 },
    ],
  },
} as const satisfies Record<string, Profile>;

/** The profiles that `profile` takes. */
export const PROFILE_NAMES = Object.keys(PROFILES) as ProfileName[];

/** Whether a value is a text that parses as an http or https URL (WHK-25, UPD-15). */
export function isHttpUrl(value: unknown): value is string {
  return typeof value === "string" && /^https?:\/\//i.test(value) && URL.canParse(value);
}

/** A phone number in E.164: a plus sign and 2 to 15 digits, the first of them no zero; nothing is trimmed (SND-25). */
export const E164 = /^\+[1-9]\d{1,14}$/;

// Which Host headers name this machine: one rule for the listener and the control API.

export const FOREIGN_HOST =
  'The Host header must name this machine: localhost, 127.0.0.1 or [::1]. To be reached by other names, the emulator needs the option "host" and a control token.';

/** The name in a Host header, in lower case and without brackets; null when it is not one name with at most a port. */
export function hostNameIn(header: string): string | null {
  const name = /^([\w.-]+|\[[\da-f:.]+\])(?::\d{1,5})?$/i.exec(header)?.[1];
  return name?.toLowerCase().replace(/^\[|\]$/g, "") ?? null;
}

/** A name that an attacker's name server made point here (DNS rebinding) is none of these. */
export function isOwnHost(header: string, { host: bound }: Settings): boolean {
  const name = hostNameIn(header);
  if (name === null) return false;
  // A host that listens everywhere has names we cannot know. The token, mandatory there, protects the controls.
  if (isEverywhere(bound)) return true;
  return isLoopback(name) || name === bound;
}
