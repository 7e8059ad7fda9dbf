/** A keyring source over a provider that the test controls. */
import type { LogFields, Logger } from "../../src/internal/logger.ts";
import { keyringsFrom } from "../../src/sources/keyring-provider.ts";
import type { Keyring, KeyringContext, KeyringProvider, SourceKeys } from "../../src/sources/keys.ts";
import { STRICT_RULES } from "../../src/sources/secret.ts";
import { createFakeClock } from "../../src/tools/testing/fake-clock.ts";

export const MINUTE = 60_000;

/** A source over `answer`, with its reads counted and its log kept. */
export function setUp(answer: KeyringProvider) {
  const clock = createFakeClock();
  const log: string[] = [];
  const keep = (level: string) => (fields: LogFields, message: string) =>
    void log.push(`${level} ${JSON.stringify(fields)} ${message}`);
  const logger: Logger = { debug: keep("debug"), info: keep("info"), warn: keep("warn"), error: keep("error") };
  const reads: KeyringContext[] = [];
  const provider: KeyringProvider = (context) => {
    reads.push(context);
    const given = answer(context);
    return given instanceof Promise ? given.then((keyring) => named(keyring, context)) : named(given, context);
  };
  return { clock, log, logger, reads, source: keyringsFrom(provider, STRICT_RULES, { clock, logger }) };
}

/** A tenant's plain secret, with the tenant that it must name. */
function named(keyring: Keyring | undefined, { tenant }: KeyringContext): Keyring | undefined {
  if (tenant === undefined || typeof keyring !== "string" || keyring.length < 16) return keyring;
  return { current: { secret: keyring, tenant: "apc_1" } };
}

export function atHand(keyring: SourceKeys | Promise<SourceKeys>): SourceKeys {
  if (keyring instanceof Promise) throw new Error("not at hand");
  return keyring;
}

/** A provider's answer that a test gives when it wants to. */
export function pending() {
  const waiting: { resolve: (keyring: Keyring | undefined) => void; reject: (error: unknown) => void }[] = [];
  const answer = () => new Promise<Keyring | undefined>((resolve, reject) => void waiting.push({ resolve, reject }));
  return { waiting, answer };
}

export const settle = () => new Promise<void>((resolve) => setImmediate(resolve));
