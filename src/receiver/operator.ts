/** What a person who looks after an inbox sees and can do: `receiver.inbox`. */
import { OncehookError } from "../errors.ts";
import type { WebhookEvent } from "../events/types.ts";
import type {
  AuditRecord,
  EventId,
  EventRecord,
  InboxStats,
  LaneId,
  LaneKey,
  LaneRecord,
  LaneSummary,
  QuarantineRecord,
} from "../inbox/record.ts";
import type { Act, ActResult, EventQuery, InboxStore, LaneQuery, Page, QuarantineQuery, Turn } from "../inbox/store.ts";
import type { Subject } from "../inbox/subject.ts";
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
import { exportSubject, type SubjectRecord } from "./export-subject.ts";
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
import { findQuarantined, newEvent, quarantinedEvent } from "./to-inbox-event.ts";

/** Who acts, for the audit; a name or an id, never more. */
export interface ActOptions {
  /** Default `"application"`. */
  readonly by?: string;
}

/** What it needs of the receiver around it. */
export interface OperatorDeps {
  /** Asked for each time: another receiver's inbox may be taken over. */
  readonly store: () => InboxStore<never>;
  readonly clock: Clock;
  readonly open: () => Promise<void>;
  /** Called after an act that was done, or may have been, so that what became ready is looked for. */
  readonly acted: () => void;
  readonly gapWaitMs: (event: WebhookEvent) => number;
  readonly lateEvents: () => Turn<never>["lateEvents"];
}

export class InboxOperator {
  readonly #deps: OperatorDeps;

  constructor(deps: OperatorDeps) {
    this.#deps = deps;
  }

  /** Events that match all filters, newest first; 100 unless `limit` (1 to 1,000) says otherwise. */
  async find(query: Partial<EventQuery> = {}): Promise<Page<EventRecord>> {
    const asked = eventQuery(query);
    await this.#deps.open();
    return this.#deps.store().find(asked);
  }

  /**
   * Messages that match all filters, those that came first last; 100 unless `limit` (1 to 1,000) says otherwise.
   *
   * @example
   * const terminal = ["message.delivery", "message.failed"];
   * const open = await inbox.findLanes({ tag: "outbound", without: terminal, quietSince: Date.now() - 90 * 60_000 });
   */
  async findLanes(query: Partial<LaneQuery> = {}): Promise<Page<LaneSummary>> {
    const asked = laneQuery(query);
    await this.#deps.open();
    return this.#deps.store().findLanes(asked);
  }

  async findQuarantined(query: Partial<QuarantineQuery> = {}): Promise<Page<QuarantineRecord>> {
    const asked = quarantineQuery(query);
    await this.#deps.open();
    return this.#deps.store().findQuarantined(asked);
  }

  /** Everything about one message; null when the inbox knows none. */
  async lane(ref: LaneKey | LaneId): Promise<LaneRecord | null> {
    checkLane(ref);
    await this.#deps.open();
    return this.#deps.store().lane(ref);
  }

  async stats(): Promise<InboxStats> {
    await this.#deps.open();
    return this.#deps.store().stats();
  }

  /** The newest acts first; 100 unless `limit` (1 to 1,000) says otherwise. */
  async audit(limit?: number): Promise<readonly AuditRecord[]> {
    const rows = auditLimit(limit);
    await this.#deps.open();
    return this.#deps.store().audit(rows);
  }

  /** Hands a settled event to its handlers again, whatever its place: `ctx.replay` is true. */
  replay(event: EventId, options?: ActOptions): Promise<ActResult> {
    return this.#act({ kind: "replay", event }, options);
  }

  /** Sets a pending event or a dead letter aside; what waits behind it goes on. */
  discard(event: EventId, options?: ActOptions): Promise<ActResult> {
    return this.#act({ kind: "discard", event }, options);
  }

  /** Dead letters that failed alike, counted; the largest group first. */
  groupByError(query: BulkQuery = {}): Promise<readonly ErrorGroup[]> {
    return groupByError(this, query);
  }

  /**
   * Replays all events that match, dead letters unless `states` says otherwise: in lane and sequence order, one after the other.
   * What comes to match meanwhile is left alone, and so is what somebody else has acted on (`wrong_state`, `not_found`); it can be
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

  /** Lets a message go on that is blocked behind its dead letter. */
  unblock(lane: LaneId, options?: ActOptions): Promise<ActResult> {
    return this.#act({ kind: "unblock", lane }, options);
  }

  /** Gives the gap up that a message waits for. */
  releaseGap(lane: LaneId, options?: ActOptions): Promise<ActResult> {
    return this.#act({ kind: "release_gap", lane }, options);
  }

  /** Removes a person's data: bodies, numbers, references and error texts. What identifies an event stays, so that a repeat is still known. */
  async erase(subject: Subject, options?: ActOptions): Promise<ActResult> {
    checkSubject("inbox.erase()", subject);
    return this.#act({ kind: "erase", subject }, options);
  }

  /**
   * Everything that is held on a person or a message, as plain JSON: what `erase` would take away.
   *
   * @example
   * for await (const record of inbox.exportSubject({ peer: "+15550100002" })) console.log(JSON.stringify(record));
   */
  async *exportSubject(subject: Subject): AsyncGenerator<SubjectRecord, void> {
    checkSubject("inbox.exportSubject()", subject);
    await this.#deps.open();
    yield* exportSubject(this.#deps.store(), subject);
  }

  /**
   * Parses a quarantined body again, as after an upgrade, and accepts it under its real identity.
   *
   * @throws OncehookError `invalid_event` when it is still no event, or not one that the secret which signed it vouches for
   */
  async replayQuarantined(id: number, options?: ActOptions): Promise<ActResult> {
    checkId("quarantine", id);
    await this.#deps.open();
    const row = await findQuarantined(this.#deps.store(), id);
    if (row === null) return { ok: false, reason: "not_found" };
    const read = await quarantinedEvent(row);
    if (!read.ok && read.reason === "invalid_event") throw new OncehookError("invalid_event", read.message);
    if (!read.ok) return { ok: false, reason: read.reason };
    const event = newEvent(read.event, read.raw, row, this.#deps.gapWaitMs);
    return this.#act(
      { kind: "replay_quarantined", quarantine: id, event, lateEvents: this.#deps.lateEvents() },
      options,
    );
  }

  discardQuarantined(id: number, options?: ActOptions): Promise<ActResult> {
    return this.#act({ kind: "discard_quarantined", quarantine: id }, options);
  }

  /** Records that somebody is shown the numbers and texts of a message: to be called before they are. */
  reveal(lane: LaneId, options?: ActOptions): Promise<ActResult> {
    return this.#act({ kind: "reveal", lane }, options);
  }

  /** The same of a quarantined body. */
  revealQuarantined(id: number, options?: ActOptions): Promise<ActResult> {
    return this.#act({ kind: "reveal_quarantined", quarantine: id }, options);
  }

  get #actor(): Actor {
    return {
      clock: this.#deps.clock,
      find: (query) => this.find(query),
      lane: (id) => this.lane(id),
      act: (act, options) => this.#act(act, options),
    };
  }

  async #act(act: Act, { by = "application" }: ActOptions = {}): Promise<ActResult> {
    checkAct(act);
    checkActor(by);
    await this.#deps.open();
    let result: ActResult | null = null;
    try {
      result = await this.#deps.store().act(act, by);
      return result;
    } finally {
      // Without an answer it may be done all the same.
      if (result?.ok !== false) this.#deps.acted();
    }
  }
}
