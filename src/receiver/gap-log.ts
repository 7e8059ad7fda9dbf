/** Logs once for each gap that an event waits for a missing one: for which, and until when. */
import { gapBefore } from "../inbox/gap.ts";
import { logFieldsOf } from "../inbox/log-fields.ts";
import type { LaneId, LaneRecord } from "../inbox/record.ts";
import type { InboxStore } from "../inbox/store.ts";
import type { Clock, Timer } from "../internal/clock.ts";
import type { Logger } from "../internal/logger.ts";

/** Events overtake each other on the network: a wait that is over sooner is not worth a line. */
const WORTH_A_LINE_MS = 1_000;
/** Messages looked at in a second, and kept to be looked at. After an outage thousands can begin to wait at once. */
const MOST_LOOKS = 20;
const MOST_KEPT = 1_000;

export interface GapLogOptions {
  readonly store: Pick<InboxStore, "lane" | "capabilities">;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly firstSequence: number | "any";
}

export class GapLog {
  readonly #options: GapLogOptions;
  /** Lanes that began to wait, each with the monotonic time from which that is worth a line; the oldest first. */
  readonly #waiting = new Map<LaneId, number>();
  #timer: Timer | null = null;
  #isClosed = false;

  constructor(options: GapLogOptions) {
    this.#options = options;
  }

  began(lane: LaneId): void {
    if (this.#isClosed || this.#waiting.size >= MOST_KEPT) return;
    this.#waiting.delete(lane);
    this.#waiting.set(lane, this.#options.clock.monotonic() + WORTH_A_LINE_MS);
    this.#plan();
  }

  /** Its wait is over, as far as this process knows. */
  ended(lane: LaneId): void {
    if (this.#waiting.size > 0) this.#waiting.delete(lane);
  }

  /** At the end of a drain: the process may be frozen or gone before a second has passed. */
  async flush(): Promise<void> {
    await this.#look([...this.#waiting.keys()]);
  }

  close(): void {
    this.#isClosed = true;
    this.#timer?.cancel();
    this.#waiting.clear();
  }

  #plan(): void {
    this.#timer ??= this.#options.clock.setTimeout(() => void this.#lookAtDue(), WORTH_A_LINE_MS);
  }

  async #lookAtDue(): Promise<void> {
    const now = this.#options.clock.monotonic();
    await this.#look([...this.#waiting].flatMap(([lane, dueAt]) => (dueAt <= now ? [lane] : [])));
    this.#timer = null;
    if (this.#waiting.size > 0) this.#plan();
  }

  /** Another process may have taken the event meanwhile: the store knows. */
  async #look(lanes: readonly LaneId[]): Promise<void> {
    for (const id of lanes.slice(0, MOST_LOOKS)) {
      this.#waiting.delete(id);
      const lane = await this.#options.store.lane(id).catch(() => null);
      if (lane?.status === "gap" && !this.#isClosed) this.#tell(lane);
    }
  }

  #tell(lane: LaneRecord): void {
    const { logger, firstSequence, store } = this.#options;
    const waiting = lane.events.find(({ state, late, forced }) => state === "pending" && !late && !forced);
    if (waiting === undefined || lane.readyAt === null) return;
    const isSettled = (sequence: number) => lane.events.some((event) => event.sequence === sequence);
    const missing = gapBefore({ ordered: true, cursor: lane.cursor, firstSequence, isSettled }, waiting);
    if (missing === null) return;
    const { id: eventId, sequence, eventType } = waiting;
    const until = new Date(lane.readyAt).toISOString();
    const { from, to } = missing;
    const said = from === to ? `sequence ${from}` : `the sequences ${from} to ${to}`;
    logger.warn(
      {
        ...{ code: "waits_for_gap", ...logFieldsOf({ eventId, lane: lane.key, sequence, eventType }), missing, until },
        ...(store.capabilities.shared && { more: `oncehook inbox release ${lane.id} ends the wait` }),
      },
      `An event waits for ${said} of its message, until ${until} at the latest. Then it is handled without.`,
    );
  }
}
