/** What an operator can see and do, with the answer to an access request: `receiver.inbox`, and an inbox that `openInbox` opened. */

import { isUtf8 } from "node:buffer";
import { OncehookError } from "../errors.ts";
import { allPages, quarantinedRows } from "../inbox/copy.ts";
import type { Released } from "../inbox/handlers.ts";
import { isShared } from "../inbox/lane-key.ts";
import type {
  AttemptRecord,
  AuditRecord,
  EventBody,
  EventId,
  EventRecord,
  EventSummary,
  InboxStats,
  LaneId,
  LaneKey,
  LaneRecord,
  LaneSummary,
  QuarantineRecord,
  QuarantineSummary,
  TransferredEvent,
  TransferredLane,
} from "../inbox/record.ts";
import type {
  Act,
  ActResult,
  EventQuery,
  InboxStore,
  LaneQuery,
  LaneRef,
  Page,
  QuarantineQuery,
} from "../inbox/store.ts";
import { MOST_BYTES } from "../inbox/store-rules.ts";
import { createSubjectTest, type Subject } from "../inbox/subject.ts";
import type { Clock } from "../internal/clock.ts";
import {
  type Actor,
  type BulkQuery,
  type DiscardAllOptions,
  type DiscardCounts,
  discardAll,
  type ErrorGroup,
  groupByError,
  type ReplayAllOptions,
  type ReplayCounts,
  replayAll,
} from "./bulk.ts";
import {
  auditLimit,
  checkAct,
  checkActor,
  checkId,
  checkLane,
  checkSubject,
  eventQuery,
  laneQuery,
  quarantineQuery,
} from "./queries.ts";

/** Who acts, for the audit: only a name or an id. */
export interface ActOptions {
  /** Default `"application"`. */
  readonly by?: string;
}

/** The inbox of an operator: that of a receiver's engine, or an open store. */
export interface OperatedInbox {
  readonly options: {
    readonly store: InboxStore<never>;
    readonly clock: Clock;
  };
  /** Reads a quarantined body again. */
  release(row: QuarantineRecord): Released | Promise<Released>;
  /** As `StoredReader.shows`, of an entry that this process has. */
  shows(entry: string): readonly string[] | undefined;
  open(): Promise<void>;
  /** Called after an act that was done, or may have been done: it may have made events ready. */
  afterAct(): void;
}

/** Reads an inbox, and acts on it. Each act leaves a row in the audit. */
export class InboxOperator {
  readonly #inbox: () => OperatedInbox;

  /** @param inbox - called at each use: `takeOver()` replaces a receiver's engine */
  constructor(inbox: () => OperatedInbox) {
    this.#inbox = inbox;
  }

  /** Events that match all filters, without their bodies, newest first; 100 unless `limit` (1 to 1,000) sets another number. */
  async find(query: Partial<EventQuery> = {}): Promise<Page<EventSummary>> {
    const asked = eventQuery(query);
    return (await this.#open()).find(asked);
  }

  /**
   * Messages that match all filters, newest first; 100 unless `limit` (1 to 1,000) sets another number.
   *
   * @example
   * const terminal = ["message.delivery", "message.failed"];
   * const open = await inbox.findLanes({ order: "sequence", without: terminal, quietSince: Date.now() - 90 * 60_000 });
   */
  async findLanes(query: Partial<LaneQuery> = {}): Promise<Page<LaneSummary>> {
    const asked = laneQuery(query);
    return (await this.#open()).findLanes(asked);
  }

  /** Rows of the quarantine, without their bodies, newest first; 100 unless `limit` (1 to 1,000) sets another number. */
  async findQuarantined(query: Partial<QuarantineQuery> = {}): Promise<Page<QuarantineSummary>> {
    const asked = quarantineQuery(query);
    return (await this.#open()).findQuarantined(asked);
  }

  /** One message, without the bodies of its events. Null if the inbox does not know it. Of a long lane it has up to 1,000 events: see `more`. */
  async lane(ref: LaneRef): Promise<LaneRecord | null> {
    checkLane(ref);
    return (await this.#open()).lane(ref);
  }

  /**
   * The bodies of events, in the order of `events`, and none after the one with which they reach 16 MiB. One alone is always read, unless it
   * is pruned or erased.
   *
   * @example
   * const body = (await inbox.bodies([event.id])).get(event.id);
   */
  async bodies(events: readonly EventId[]): Promise<ReadonlyMap<EventId, EventBody>> {
    for (const id of events) checkId("event", id);
    return (await this.#open()).bodies(events, MOST_BYTES);
  }

  async stats(): Promise<InboxStats> {
    return (await this.#open()).stats();
  }

  /** The newest acts first; 100 unless `limit` (1 to 1,000) sets another number. */
  async audit(limit?: number): Promise<readonly AuditRecord[]> {
    const rows = auditLimit(limit);
    return (await this.#open()).audit(rows);
  }

  /** Passes a completed event to its handlers again, whatever its sequence. `ctx.replay` is true. */
  replay(event: EventId, options?: ActOptions): Promise<ActResult> {
    return this.#act({ kind: "replay", event }, options);
  }

  /** Sets a pending event or a dead letter aside. Events that wait behind it continue. */
  discard(event: EventId, options?: ActOptions): Promise<ActResult> {
    return this.#act({ kind: "discard", event }, options);
  }

  /** Counts dead letters by error, the largest group first. */
  groupByError(query: BulkQuery = {}): Promise<readonly ErrorGroup[]> {
    return groupByError(this, query);
  }

  /**
   * Replays all events that match, dead letters unless `states` says otherwise: in lane and sequence order, one after the other.
   * It leaves alone events that match later, and those that someone else has acted on (`wrong_state`, `not_found`). It can be
   * stopped at any point and called again for the rest.
   *
   * @throws SetupError for an unknown filter or option, or one out of bounds
   * @throws the reason of `signal` when it aborts
   *
   * @example
   * const counts = await inbox.replayAll({ errorCode: "ECONNREFUSED" }, { ratePerSecond: 50, skipSuperseded: true });
   */
  async replayAll(query: BulkQuery = {}, options: ReplayAllOptions = {}): Promise<ReplayCounts> {
    return replayAll(this.#actor, query, options);
  }

  /** Discards all events that match, as `replayAll` replays them. */
  async discardAll(query: BulkQuery = {}, options: DiscardAllOptions = {}): Promise<DiscardCounts> {
    return discardAll(this.#actor, query, options);
  }

  /** Lets a message continue that is blocked behind its dead letter. */
  unblock(lane: LaneId, options?: ActOptions): Promise<ActResult> {
    return this.#act({ kind: "unblock", lane }, options);
  }

  /** Ends the wait of a message for a missing sequence. */
  releaseGap(lane: LaneId, options?: ActOptions): Promise<ActResult> {
    return this.#act({ kind: "release_gap", lane }, options);
  }

  /** Removes a person's data: bodies, numbers, references and error texts. Identities stay, so that a repeat is still recognised. */
  async erase(subject: Subject, options?: ActOptions): Promise<ActResult> {
    checkSubject("inbox.erase()", subject);
    return this.#act({ kind: "erase", subject }, options);
  }

  /**
   * Everything that the inbox holds about a person or a message, as plain JSON: what `erase` would remove.
   *
   * @example
   * for await (const record of inbox.exportSubject({ peer: "+15550100002" })) console.log(JSON.stringify(record));
   */
  async *exportSubject(subject: Subject): AsyncGenerator<SubjectRecord, void> {
    checkSubject("inbox.exportSubject()", subject);
    yield* exportSubject(await this.#open(), subject);
  }

  /**
   * Parses a quarantined body again, as after an upgrade, and accepts it under its real identity.
   *
   * @throws OncehookError `invalid_event` if the body is still not a valid event, or the secret that signed it does not cover the event;
   *   `source_needed` if it came through a source that this process does not have
   */
  async replayQuarantined(id: number, options?: ActOptions): Promise<ActResult> {
    checkId("quarantine", id);
    const found = await this.quarantined(id);
    if (found === null) return { ok: false, reason: "not_found" };
    const { released } = found;
    if (!released.ok && released.reason !== "body_pruned") throw new OncehookError(released.reason, released.message);
    if (!released.ok) return { ok: false, reason: released.reason };
    return this.#act({ kind: "replay_quarantined", quarantine: id, event: released.event }, options);
  }

  /**
   * Paths of the fields that anyone who looks at an entry's events may see, as its source names them. If this process does not have the
   * entry, as a process that has it recorded them.
   *
   * @param entry - its name
   */
  async shows(entry: string): Promise<readonly string[]> {
    const own = this.#inbox().shows(entry);
    if (own !== undefined) return own;
    const recorded = await (await this.#open()).admit([]);
    return recorded.find(({ name }) => name === entry)?.shows ?? [];
  }

  /** A quarantined body, and the event that its replay would accept. Null if there is no such body. */
  async quarantined(id: number): Promise<{ readonly row: QuarantineRecord; readonly released: Released } | null> {
    checkId("quarantine", id);
    const row = await (await this.#open()).quarantined(id);
    return row === null ? null : { row, released: await this.#inbox().release(row) };
  }

  discardQuarantined(id: number, options?: ActOptions): Promise<ActResult> {
    return this.#act({ kind: "discard_quarantined", quarantine: id }, options);
  }

  /** Records that the numbers and texts of a message are shown to a person. Call it before showing them. */
  reveal(lane: LaneId, options?: ActOptions): Promise<ActResult> {
    return this.#act({ kind: "reveal", lane }, options);
  }

  /** The same for a quarantined body. */
  revealQuarantined(id: number, options?: ActOptions): Promise<ActResult> {
    return this.#act({ kind: "reveal_quarantined", quarantine: id }, options);
  }

  get #actor(): Actor {
    return {
      clock: this.#inbox().options.clock,
      find: (query) => this.find(query),
      lane: (id) => this.lane(id),
      act: (act, options) => this.#act(act, options),
    };
  }

  async #act(act: Act, { by = "application" }: ActOptions = {}): Promise<ActResult> {
    checkAct(act);
    checkActor(by);
    const store = await this.#open();
    let result: ActResult | null = null;
    try {
      result = await store.act(act, by);
      return result;
    } finally {
      // Without an answer it may still have been done.
      if (result?.ok !== false) this.#inbox().afterAct();
    }
  }

  async #open(): Promise<InboxStore<never>> {
    await this.#inbox().open();
    return this.#inbox().options.store;
  }
}

const LANES_PER_LIST = 1_000;
const LANES_PER_PAGE = 250;

/** A body as JSON can hold it: as text, or in base64 if it is not UTF-8. */
export type ExportedBody = { readonly text: string } | { readonly base64: string };

/** An event with the facts of its message's lane. Times are epoch milliseconds. */
export interface ExportedEvent
  extends Omit<EventRecord, "laneId" | "lane" | "raw" | "head" | "untimed" | "digest" | "conflict" | "trace">,
    Pick<LaneKey, "source" | "tenant" | "order"> {
  readonly kind: "event";
  /** The name of its lane. */
  readonly lane: string | null;
  /** The other party's number. */
  readonly peer: string | null;
  readonly externalReference: string | null;
  /** Null once pruned. */
  readonly body: ExportedBody | null;
  /** The headers that the event's source keeps next to the body, if it keeps any. */
  readonly headers?: Readonly<Record<string, string>>;
  /** The first delivery of it with different content. */
  readonly conflict: { readonly at: number; readonly body: ExportedBody } | null;
  readonly failedAttempts: readonly Omit<AttemptRecord, "eventId">[];
}

/** A quarantined body, as `export` yields it. */
export interface ExportedQuarantine
  extends Pick<QuarantineRecord, "id" | "reason" | "state" | "signedAt" | "acceptedAt"> {
  readonly kind: "quarantined";
  readonly body: ExportedBody;
  /** The headers that its source keeps next to the body. Absent without any. */
  readonly headers?: Readonly<Record<string, string>>;
}

/** Plain JSON: `JSON.stringify` loses nothing. */
export type SubjectRecord = ExportedEvent | ExportedQuarantine;

/** The methods of a store that it uses. */
export type SubjectStore = Pick<InboxStore, "export" | "find" | "findLanes" | "findQuarantined" | "quarantined">;

/** Erased rows name nobody, and are not exported. The event loop runs between two pages. */
export async function* exportSubject(store: SubjectStore, subject: Subject): AsyncGenerator<SubjectRecord, void> {
  const { isAbout, isEventAbout, isNamedIn } = createSubjectTest(subject, bodiesOf);
  for await (const lane of lanesOf(store, await candidates(store, subject))) {
    if (!isAbout(lane)) continue;
    // The other events of a lane of several may be about somebody else.
    const own = isShared(lane.key) ? lane.events.filter(isEventAbout) : lane.events;
    for (const event of own) if (holdsData(lane, event)) yield exportedEvent(lane, event);
  }
  for await (const { id, reason, state, signedAt, acceptedAt, raw, head } of quarantinedRows(store)) {
    if (raw === null || !isNamedIn(raw)) continue;
    const row = { id, reason, state, signedAt, acceptedAt, body: exportedBody(raw) };
    yield { kind: "quarantined", ...row, ...exportedHeaders(head) };
  }
}

/** Lanes that may be about it, ascending: those whose fields show it, and those for which only the bodies can. */
async function candidates(store: SubjectStore, subject: Subject): Promise<readonly LaneId[]> {
  const ids = new Set<LaneId>();
  const take = async (query: Partial<LaneQuery>) => {
    for await (const { id } of allPages((page) => store.findLanes({ ...query, ...page, limit: LANES_PER_LIST })))
      ids.add(id);
  };
  if ("peer" in subject) {
    await take({ peer: subject.peer });
    await take({ peer: null });
  } else {
    for (const order of [null, "position", "arrival"] as const) await take({ order });
    const lane = subject.id;
    for await (const { laneId } of allPages((page) => store.find({ lane, ...page, limit: LANES_PER_LIST })))
      ids.add(laneId);
  }
  return [...ids].sort((a, b) => a - b);
}

/** Neighbouring ids are read together. */
async function* lanesOf(store: SubjectStore, ids: readonly LaneId[]): AsyncGenerator<TransferredLane> {
  const wanted = new Set(ids);
  for (let at = 0; at < ids.length; ) {
    const first = ids[at] ?? 0;
    let last = first;
    for (; (ids[at] ?? Number.POSITIVE_INFINITY) < first + LANES_PER_PAGE; at++) last = ids[at] ?? last;
    for (let next = first; next <= last; ) {
      const lanes = await store.export(next - 1, last - next + 1);
      // If lanes in between were removed, the page has some of the next ones. If bodies are large, it has fewer.
      yield* lanes.filter(({ id }) => id <= last && wanted.has(id));
      next = (lanes.at(-1)?.id ?? last) + 1;
      await new Promise<void>((resolve) => setImmediate(resolve));
    }
  }
}

function bodiesOf({ raw, conflicting }: TransferredEvent): readonly Uint8Array[] {
  return [raw, conflicting?.raw].filter((body) => body != null);
}

function attemptsOf({ attempts }: TransferredLane, { id }: TransferredEvent) {
  return attempts.filter(({ eventId }) => eventId === id).map(({ eventId: _eventId, ...facts }) => facts);
}

function holdsData(lane: TransferredLane, event: TransferredEvent): boolean {
  const { raw, error, conflicting } = event;
  if (lane.peer !== null || lane.externalReference !== null) return true;
  if (raw !== null || error !== null || conflicting !== null) return true;
  return attemptsOf(lane, event).some((attempt) => attempt.error !== "");
}

function exportedEvent(lane: TransferredLane, event: TransferredEvent): ExportedEvent {
  const {
    raw,
    head,
    conflicting,
    digest: _digest,
    untimed: _untimed,
    conflict: _conflict,
    trace: _trace,
    gapWaitMs: _gapWaitMs,
    ...facts
  } = event;
  const { source, tenant, name, order } = lane.key;
  return {
    kind: "event",
    ...{ source, tenant, lane: name, order },
    ...facts,
    peer: lane.peer,
    externalReference: lane.externalReference,
    body: raw === null ? null : exportedBody(raw),
    ...exportedHeaders(head),
    conflict: conflicting === null ? null : { at: conflicting.at, body: exportedBody(conflicting.raw) },
    failedAttempts: attemptsOf(lane, event),
  };
}

function exportedHeaders(head: string | null): { readonly headers?: Readonly<Record<string, string>> } {
  return head === null ? {} : { headers: JSON.parse(head) as Record<string, string> };
}

export function exportedBody(raw: Uint8Array): ExportedBody {
  const bytes = Buffer.from(raw.buffer, raw.byteOffset, raw.byteLength);
  return isUtf8(bytes) ? { text: bytes.toString() } : { base64: bytes.toString("base64") };
}
