/** What the tests of `oncehook doctor` prepare: a folder, an inbox in it, and surroundings in which all is well. */
import { join } from "node:path";
import { onTestFinished } from "vitest";
import type { InboxStore } from "../../../../src/inbox/store.ts";
import { type Clock, systemClock } from "../../../../src/internal/clock.ts";
import { compileKeys } from "../../../../src/sources/keys.ts";
import { STRICT_RULES } from "../../../../src/sources/secret.ts";
import { sqliteStore } from "../../../../src/stores/sqlite.ts";
import { type DoctorFlags, examine, type Surroundings } from "../../../../src/tools/cli/doctor/examine.ts";
import type { Finding } from "../../../../src/tools/cli/doctor/finding.ts";
import { thisRuntime } from "../../../../src/tools/cli/doctor/runtime.ts";
import { contextOf } from "../../../stores/sqlite-turns.ts";
import { newFolder } from "../place.ts";

/** As `openssl rand -hex 32` makes them. */
export const SECRET = "9d1c5b0f6e2a47c388f04be1d7a3f96520c7e84b1f5d60a9e3b2487cd6f1a035";

/** The system's clock as it was, or will be, `ms` from now; waits are over at once. */
export function clockAt(ms = 0): Clock {
  return {
    now: () => Date.now() + ms,
    monotonic: () => performance.now(),
    setTimeout(callback, wait) {
      if (wait < 5_000) setImmediate(callback);
      return { cancel() {}, keepAlive() {} };
    },
  };
}

export interface InboxWish {
  /** How long ago everything in it happened. Default 0. */
  readonly agoMs?: number;
  /** The secrets that the receiver has, and what it has counted; null for a receiver that never said anything. */
  readonly beat?: { readonly secret?: string; readonly counters?: Readonly<Record<string, number>> } | null;
  readonly fill?: (store: InboxStore<never>) => Promise<void>;
  /** Past and future together, as recorded. Default: the receiver's own. */
  readonly toleranceMs?: number;
}

/** The file of a SQLite inbox whose receiver runs on, until the test has ended. */
export async function newInbox(wish: InboxWish = {}): Promise<string> {
  const { agoMs = 0, beat = {}, fill, toleranceMs = 95 * 60_000 } = wish;
  const path = join(newFolder(), "inbox.db");
  const filled = sqliteStore(path) as InboxStore<never>;
  const rules = { name: "default", toleranceMs };
  await filled.open(contextOf({ clock: clockAt(-agoMs), rules }));
  await fill?.(filled);
  await filled.close();
  if (beat === null) return path;
  const receiver = sqliteStore(path) as InboxStore<never>;
  await receiver.open(contextOf({ rules }));
  onTestFinished(() => receiver.close());
  const { secret = SECRET, counters = { "slot:service:current": 100 } } = beat;
  await receiver.heartbeat({ keyringVersion: compileKeys(secret, STRICT_RULES, Date.now()).version, counters });
  return path;
}

export const PLENTY = { freeBytes: () => 2 ** 40, typeOf: () => 0 };

/** All findings, in order. */
export async function diagnose(flags: DoctorFlags, changed: Partial<Surroundings> = {}): Promise<Finding[]> {
  const standard = { clock: systemClock, fetch: globalThis.fetch, env: {}, runtime: thisRuntime(), disk: PLENTY };
  const findings: Finding[] = [];
  for await (const finding of examine(flags, { ...standard, ...changed })) findings.push(finding);
  return findings;
}
