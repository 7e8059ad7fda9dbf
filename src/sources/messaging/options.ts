/** The options of the messaging service as a source of deliveries. */
import { SetupError } from "../../errors.ts";
import { choiceOption, functionOption, numberOption, refuseUnknownOptions } from "../../internal/options.ts";
import { isBuilding } from "../../internal/process.ts";
import type { EventFilter } from "../filter.ts";
import { type GapWait, gapWaitPolicy } from "./gap-wait.ts";
import type { Keyring, KeyringProvider } from "./keyring.ts";
import type { SecretStore } from "./secret-store.ts";
import type { WebhookEvent } from "./types.ts";
import {
  type HeaderPolicy,
  type SignatureEncoding,
  type TimestampFormat,
  type Tolerance,
  timestampFormatOption,
} from "./verify.ts";

const MINUTE_MS = 60_000;
const DAY_MS = 86_400_000;
const KIB = 1024;

export interface ServiceOptions {
  /**
   * A secret, a set of them, one per webhook kind, a function that reads them, or a secret store, such as `sqliteSecrets` of
   * oncehook/sqlite. A store is read again every `refreshMs`, and stays open when the receiver stops (RCV-9). A missing secret is refused
   * at once; only in `next build` the first delivery reports it.
   */
  readonly secrets: Keyring | KeyringProvider | SecretStore;
  /** How old or how far ahead a timestamp may be. Milliseconds, 1 to 86,400,000. Default 90 minutes past, 5 minutes ahead. */
  readonly toleranceMs?: { readonly past?: number; readonly future?: number };
  /** Default `"auto"`: 10 digits are seconds, 13 are milliseconds (DLV-13). */
  readonly timestampFormat?: TimestampFormat;
  /** How signatures are written. Default: detected by length (DLV-12). */
  readonly signatureEncoding?: SignatureEncoding;
  /**
   * How long an event waits for a missing sequence. `"balanced"` (default): `message.failed` 90 s, others 22 min. `"strict"`: 85 min,
   * until the service's last retry. `"eager"`: not at all. Or a function that returns milliseconds for an event, 0 to 24 h.
   */
  readonly gapWait?: GapWait;
  /** The sequence of a message's first event (EVT-8). 0 to 10,000, or `"any"`: the first to arrive counts as the first. Default 1. */
  readonly firstSequence?: number | "any";
  /** Bytes of a body at most. 1,024 to 1,048,576 (1 MiB). Default 262,144 (256 KiB). */
  readonly maxBodyBytes?: number;
  /** Returns false for an event that is not wanted: it is answered with 200, and never handled. Default: all are wanted. */
  readonly filter?: EventFilter<WebhookEvent>;
}

export const SERVICE_OPTIONS = [
  "secrets",
  "toleranceMs",
  "timestampFormat",
  "signatureEncoding",
  "gapWait",
  "firstSequence",
  "maxBodyBytes",
  "filter",
] as const satisfies readonly (keyof ServiceOptions)[];

/** What connects the service: its options after validation. */
export interface ServiceRules {
  readonly secrets: Keyring | KeyringProvider | SecretStore;
  readonly policy: HeaderPolicy;
  /** Bytes. */
  readonly maxBodyBytes: number;
  readonly gapWaitMs: (event: WebhookEvent) => number;
  /** Whether a kind may be `"dangerouslyUnsigned"`. */
  readonly mayBeUnsigned: boolean;
  readonly filter?: EventFilter<WebhookEvent> | undefined;
}

export interface ResolvedServiceOptions extends ServiceRules {
  readonly firstSequence: number | "any";
  readonly policy: ServiceRules["policy"] & { readonly tolerance: Tolerance };
}

/** @throws SetupError naming the option and the fix */
export function checkSecretsGiven({ secrets }: Pick<ServiceOptions, "secrets">): void {
  if (secrets === undefined && !isBuilding())
    throw new SetupError("invalid_secret", 'Option "secrets" is missing: pass the webhook signing secret.');
}

/** @throws SetupError naming the option and the fix */
export function resolveServiceOptions(options: ServiceOptions): ResolvedServiceOptions {
  const { secrets, timestampFormat = "auto", firstSequence } = options;
  const tolerance = toleranceOption(options.toleranceMs);
  timestampFormatOption(timestampFormat);
  const encoding = choiceOption("signatureEncoding", options.signatureEncoding, "auto", SIGNATURE_ENCODINGS);
  return {
    secrets,
    policy: { tolerance, timestampFormat, encoding },
    gapWaitMs: gapWaitPolicy(options.gapWait),
    firstSequence:
      firstSequence === "any"
        ? "any"
        : numberOption("firstSequence", firstSequence, 1, { min: 0, max: 10_000, unit: '(or "any")' }),
    maxBodyBytes: maxBodyBytesOption(options.maxBodyBytes),
    mayBeUnsigned: true,
    filter: functionOption("filter", options.filter),
  };
}

export function maxBodyBytesOption(value: number | undefined): number {
  return numberOption("maxBodyBytes", value, 256 * KIB, { min: KIB, max: KIB * KIB, unit: "bytes" });
}

const SIGNATURE_ENCODINGS: readonly SignatureEncoding[] = ["auto", "hex", "base64", "base64url"];

function toleranceOption(value: ServiceOptions["toleranceMs"]): Tolerance {
  if (value !== undefined) refuseUnknownOptions("toleranceMs", value, ["past", "future"]);
  const bounds = { min: 1, max: DAY_MS, unit: "ms" };
  return {
    pastMs: numberOption("toleranceMs.past", value?.past, 90 * MINUTE_MS, bounds),
    futureMs: numberOption("toleranceMs.future", value?.future, 5 * MINUTE_MS, bounds),
  };
}
