/** What a person who looks after an inbox sees and can do: `receiver.inbox`. */
import { OncehookError } from "../errors.ts";
import { parseEvent } from "../events/parse.ts";
import type { WebhookEvent } from "../events/types.ts";
import type { ActResult, EventQuery, InboxStats, Page, QuarantineQuery } from "../inbox/operations.ts";
import type {
  AuditRecord,
  EventId,
  EventRecord,
  LaneId,
  LaneKey,
  LaneRecord,
  QuarantineRecord,
} from "../inbox/record.ts";
import type { Act, InboxStore, Turn } from "../inbox/store.ts";
import { scopeCovers } from "../signature/scope.ts";
import { newEvent } from "./intake.ts";
import { auditLimit, checkSubject, eventQuery, quarantineQuery, type Subject } from "./queries.ts";

/** Who acts, for the audit; a name or an id, never more. */
export interface ActOptions {
  /** Default `"application"`. */
  readonly by?: string;
}

/** What it needs of the receiver around it. */
export interface OperatorDeps {
  /** Asked for each time: another receiver's inbox may be taken over. */
  readonly store: () => InboxStore<never>;
  readonly open: () => Promise<void>;
  /** Called after an act, so that what became ready is looked for. */
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

  async findQuarantined(query: Partial<QuarantineQuery> = {}): Promise<Page<QuarantineRecord>> {
    const asked = quarantineQuery(query);
    await this.#deps.open();
    return this.#deps.store().findQuarantined(asked);
  }

  /** Everything about one message; null when the inbox knows none. */
  async lane(ref: LaneKey | LaneId): Promise<LaneRecord | null> {
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
    checkSubject(subject);
    return this.#act({ kind: "erase", subject }, options);
  }

  /**
   * Parses a quarantined body again, as after an upgrade, and accepts it under its real identity.
   *
   * @throws OncehookError `invalid_event` when it is still no event, or not one that the secret which signed it vouches for
   */
  async replayQuarantined(id: number, options?: ActOptions): Promise<ActResult> {
    await this.#deps.open();
    const page = await this.#deps.store().findQuarantined({ after: id + 1, limit: 1 });
    const row = page.items.find((item) => item.id === id);
    if (row === undefined) return { ok: false, reason: "not_found" };
    if (row.raw === null) return { ok: false, reason: "body_pruned" };
    const parsed = parseEvent(row.raw);
    if (!parsed.ok)
      throw new OncehookError(
        "invalid_event",
        `The body is still no event to this version of oncehook (${parsed.code}).`,
      );
    if (!scopeCovers(row.scope, parsed.event))
      throw new OncehookError(
        "invalid_event",
        "The secret that signed this body does not vouch for the event in it: it covers another direction or API client.",
      );
    const event = newEvent(parsed.event, row.raw, row, this.#deps.gapWaitMs);
    return this.#act(
      { kind: "replay_quarantined", quarantine: id, event, lateEvents: this.#deps.lateEvents() },
      options,
    );
  }

  discardQuarantined(id: number, options?: ActOptions): Promise<ActResult> {
    return this.#act({ kind: "discard_quarantined", quarantine: id }, options);
  }

  async #act(act: Act, { by = "application" }: ActOptions = {}): Promise<ActResult> {
    await this.#deps.open();
    const result = await this.#deps.store().act(act, by);
    if (result.ok) this.#deps.acted();
    return result;
  }
}
