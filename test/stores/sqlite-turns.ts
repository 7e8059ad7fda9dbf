/** Short words for contexts, processes, events and turns; also for a process of its own, so without the test framework. */
import { createHash } from "node:crypto";
import type { NewEvent, NewQuarantine } from "../../src/inbox/record.ts";
import { DEFAULT_SEQUENCE_RULES } from "../../src/inbox/sequence-rules.ts";
import type { ClaimRequest, InboxStore, InstanceIdentity, OpenContext, Turn } from "../../src/inbox/store.ts";
import { systemClock } from "../../src/internal/clock.ts";
import { silentLogger } from "../../src/internal/logger.ts";
import { thisInstance } from "../../src/internal/process.ts";
import type { SqliteDatabase } from "../../src/stores/sqlite.ts";

/** No process has it: Linux and macOS end far below. */
const NO_PID = 2 ** 31 - 2;

export const RULES = { name: "test", toleranceMs: 300_000 };

export function contextOf(overrides: Partial<OpenContext> = {}): OpenContext {
  const standard = { clock: systemClock, logger: silentLogger, rules: RULES };
  return { ...standard, migrate: "auto", instance: thisInstance(), ...overrides };
}

/** What a receiver records of the entry of these events. */
const SERVICE = { name: "service", preset: "service", shows: [], sequence: DEFAULT_SEQUENCE_RULES };

/** Opens a store as a receiver does, which also records its entry. */
export async function openForReceiver(
  store: Pick<InboxStore<never>, "open" | "admit">,
  overrides: Partial<OpenContext> = {},
): Promise<void> {
  await store.open(contextOf(overrides));
  await store.admit([SERVICE]);
}

/** This process, or one of this machine that no longer runs. */
export function instanceOf(life: "running" | "gone"): Omit<InstanceIdentity, "id"> {
  const { id: _id, ...running } = thisInstance();
  return life === "running" ? running : { ...running, pid: NO_PID };
}

export function event(name: string, sequence = 1, wish: Partial<NewEvent> = {}): NewEvent {
  const raw = wish.raw ?? Buffer.from(JSON.stringify({ name, sequence }));
  const now = Date.now();
  return {
    lane: { source: "service", tenant: "client", name, order: "sequence" },
    ...{ sequence, eventType: "message.sent", occurredAt: now, signedAt: now, gapWaitMs: 90_000, trace: null },
    ...{ digest: createHash("sha256").update(raw).digest(), peer: null, externalReference: null },
    ...wish,
    raw,
  };
}

/** A signed body that is not an event. */
export function quarantine(raw: Buffer, wish: Partial<NewQuarantine> = {}): NewQuarantine {
  const owner = { source: "service", tenant: null, kinds: ["delivery"], signer: "s" };
  const facts = { ...owner, reason: "invalid_json", slot: "current", trace: null };
  return { ...facts, signedAt: Date.now(), digest: createHash("sha256").update(raw).digest(), raw, ...wish };
}

/** A turn that claims nothing unless asked to. */
export function turn<Db = SqliteDatabase>(
  wish: Partial<Omit<Turn<Db>, "claim">> & { readonly claim?: Partial<ClaimRequest> } = {},
): Turn<Db> {
  return {
    ...{ settles: [], accepts: [], quarantines: [] },
    quarantineQuota: { maxRows: 10, maxBytes: 100_000 },
    ...wish,
    claim: {
      limit: 0,
      leaseMs: 30_000,
      maxAttempts: 5,
      onDead: "continue",
      takes: () => true,
      mode: "ordinary",
      ...wish.claim,
    },
  };
}
