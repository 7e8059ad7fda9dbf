/** Reads an inbox page by page, and tells whether two hold the same. */
import { createHash, type Hash, hash } from "node:crypto";
import { SetupError } from "../errors.ts";
import { plainText } from "./plain-text.ts";
import type { AuditRecord, EventState, QuarantineRecord } from "./record.ts";
import type { InboxStore, TransferredEvent, TransferredLane } from "./store.ts";

/** What a copy needs of a store. */
export type CopyStore = Pick<
  InboxStore,
  "location" | "open" | "close" | "export" | "import" | "findQuarantined" | "audit" | "stats"
>;

/** How many there are of each kind. */
export interface InboxContent extends Readonly<Record<EventState, number>> {
  readonly lanes: number;
  readonly events: number;
  /** Bodies that were neither pruned nor erased. */
  readonly bodies: number;
  readonly gaps: number;
  readonly attempts: number;
  readonly conflicts: number;
  readonly quarantined: number;
  readonly audit: number;
}

const LANES_PER_PAGE = 250;
const QUARANTINED_PER_PAGE = 100;
const MOST_AUDIT_ROWS = 1_000_000;

export async function* lanePages(store: CopyStore, after: number): AsyncGenerator<readonly TransferredLane[]> {
  for (let last = after; ; ) {
    const lanes = await store.export(last, LANES_PER_PAGE);
    const next = lanes.at(-1)?.id;
    if (next === undefined) return;
    yield lanes;
    last = next;
  }
}

export async function* quarantinePages(store: CopyStore): AsyncGenerator<readonly QuarantineRecord[]> {
  const limit = QUARANTINED_PER_PAGE;
  let page = await store.findQuarantined({ limit });
  yield page.items;
  while (page.next !== null) {
    page = await store.findQuarantined({ limit, after: page.next });
    yield page.items;
  }
}

/**
 * In ascending order.
 *
 * @throws SetupError `copy_refused` when there are too many to be read at once: the oldest would be lost
 */
export async function auditRows(store: CopyStore): Promise<readonly AuditRecord[]> {
  const rows = await store.audit(MOST_AUDIT_ROWS + 1);
  if (rows.length > MOST_AUDIT_ROWS) throw refused("Its audit has more rows than the 1,000,000 that are copied", store);
  return rows.toReversed();
}

export function refused(why: string, { location }: CopyStore): SetupError {
  return new SetupError("copy_refused", `${why}: ${location}. Nothing was lost; see docs/moving-to-postgres.md.`);
}

/** Counts what an inbox holds, and takes a digest of it that does not depend on the store. */
export class ContentReader {
  readonly #content = {
    ...{ lanes: 0, events: 0, bodies: 0, gaps: 0, attempts: 0, conflicts: 0, quarantined: 0, audit: 0 },
    ...{ pending: 0, done: 0, dead: 0, late: 0, discarded: 0 },
  };
  readonly #digest: Hash = createHash("sha256");

  get content(): InboxContent {
    return { ...this.#content };
  }

  /** To be asked for once, at the end. */
  digest(): string {
    return this.#digest.digest("hex");
  }

  addLane({ events, gaps, attempts, ...lane }: TransferredLane): void {
    const content = this.#content;
    content.lanes++;
    content.events += events.length;
    content.gaps += gaps.length;
    content.attempts += attempts.length;
    for (const event of events) {
      content[event.state]++;
      if (event.raw !== null) content.bodies++;
      if (event.conflicting !== null) content.conflicts++;
    }
    const { id, key, cursor, status, readyAt, gapSince, epoch, peer, externalReference } = lane;
    this.#add(
      [id, key.apiClientId, key.tag, key.messageId, cursor, status, readyAt, gapSince, epoch, peer, externalReference],
      events.map(eventFacts),
      gaps.map(({ from, to, skippedAt, filledAt }) => [from, to, skippedAt, filledAt]),
      attempts.map((a) => [a.eventId, a.attempt, a.at, Math.round(a.durationMs), plain(a.errorCode), plain(a.error)]),
    );
  }

  addQuarantined(row: QuarantineRecord): void {
    this.#content.quarantined++;
    const { id, reason, slot, signer, scope, state, replayedAs, signedAt, acceptedAt, trace, digest, raw } = row;
    this.#add(
      id,
      reason,
      slot,
      signer,
      scope,
      state,
      replayedAs,
      signedAt,
      acceptedAt,
      trace,
      hex(digest),
      bodyOf(raw),
    );
  }

  addAudit({ id, at, by, act, detail }: AuditRecord): void {
    this.#content.audit++;
    this.#add(id, at, plain(by), act, plain(detail));
  }

  #add(...facts: readonly unknown[]): void {
    this.#digest.update(JSON.stringify(facts));
  }
}

function eventFacts(event: TransferredEvent): readonly unknown[] {
  const { id, sequence, eventType, state, outcome, late, forced, gapWaitMs, conflicting, attempts } = event;
  const conflict = conflicting === null ? null : [hex(conflicting.digest), conflicting.signedAt, conflicting.at];
  return [
    ...[id, sequence, eventType, state, outcome, late, forced, gapWaitMs, attempts, event.duplicates, event.conflict],
    ...[event.occurredAt, event.signedAt, event.acceptedAt, event.startedAt, event.finishedAt, event.trace],
    ...[plain(event.errorCode), plain(event.error), hex(event.digest), bodyOf(event.raw)],
    ...[conflict, bodyOf(conflicting?.raw ?? null)],
  ];
}

function plain(text: string | null): string | null {
  return text === null ? null : plainText(text);
}

function bodyOf(raw: Uint8Array | null): string | null {
  return raw === null ? null : hash("sha256", raw);
}

function hex(bytes: Uint8Array): string {
  return Buffer.from(bytes).toString("hex");
}
