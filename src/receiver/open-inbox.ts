/** Opens an inbox without a receiver: for a script, the command line, or a page. */
import { type StoredReader, sourceNeeded } from "../inbox/handlers.ts";
import type { InboxRules, InboxStore, PruneResult } from "../inbox/store.ts";
import { type Clock, systemClock } from "../internal/clock.ts";
import { type Logger, loggerOption } from "../internal/logger.ts";
import { choiceOption, invalidOption } from "../internal/options.ts";
import { thisInstance } from "../internal/process.ts";
import { InboxOperator, type OperatedInbox } from "./operator.ts";
import { type RetentionOptions, retentionOption } from "./options.ts";
import { pruneBatches } from "./upkeep.ts";

export interface PlainInboxOptions {
  /** The inbox, not open: `sqliteStore("inbox.db")`. `close()` closes it. */
  readonly store: InboxStore<never>;
  /** `"auto"` migrates an inbox that needs it. Default `"check"`: such an inbox is refused. */
  readonly migrate?: "check" | "auto";
  /** Default: warnings and errors to standard error, one JSON object per line. */
  readonly logger?: Logger;
  /** For tests: `createFakeClock()` of `oncehook/testing`. */
  readonly clock?: Clock;
}

/** @param service - reads what the messaging service sent */
export async function openPlainInbox(options: PlainInboxOptions, service: StoredReader): Promise<Inbox> {
  const { store } = options;
  if (typeof store?.step !== "function")
    throw invalidOption("store", 'must be a store, such as sqliteStore("inbox.db") from oncehook/sqlite', store);
  const migrate = choiceOption("migrate", options.migrate, "check", ["check", "auto"]);
  const logger = loggerOption(options.logger);
  const clock = options.clock ?? systemClock;
  const rules = await store.open({ clock, logger, migrate, rules: "recorded", instance: thisInstance() });
  const operated: OperatedInbox = {
    options: { store, clock },
    release: async (row) => {
      const entry = (await store.admit([])).find(({ name }) => name === row.source);
      return (entry?.preset ?? row.source) === service.preset ? service.release(row) : sourceNeeded(row.source);
    },
    shows: () => undefined,
    open: async () => {},
    // Receivers notice by themselves what another process wrote.
    afterAct: () => {},
  };
  return new Inbox(operated, rules);
}

/** What `prune()` removed. */
export type Pruned = Omit<PruneResult, "more">;

export interface PruneOptions {
  /** Called after each batch, with the counts so far. If it throws, pruning ends. */
  readonly onProgress?: (sofar: Pruned) => void;
  /** Ends pruning after the current batch, with the signal's reason. */
  readonly signal?: AbortSignal;
}

/** An open inbox: everything that `receiver.inbox` can do, and pruning. */
export class Inbox extends InboxOperator {
  /** The rules that the receiver recorded when it opened this inbox last. */
  readonly rules: InboxRules;
  /** Names the place: `sqlite:/data/inbox.db`. Never a password. */
  readonly location: string;
  readonly #store: InboxStore<never>;

  /** Use `openInbox`. */
  constructor(operated: OperatedInbox, rules: InboxRules) {
    super(() => operated);
    const { store } = operated.options;
    this.rules = rules;
    this.location = store.location;
    this.#store = store;
  }

  /**
   * Removes everything past its retention, in batches that leave room for other work. Defaults and bounds are those of the receiver's
   * option `retention`, which is not recorded: pass the same values.
   *
   * @throws SetupError for a time out of bounds, or below the recorded tolerance plus a day
   */
  async prune(retention?: RetentionOptions, { onProgress, signal }: PruneOptions = {}): Promise<Pruned> {
    const resolved = retentionOption(retention, this.rules.toleranceMs);
    let sum: Pruned = { bodies: 0, events: 0, lanes: 0, quarantined: 0 };
    signal?.throwIfAborted();
    for await (const { bodies, events, lanes, quarantined } of pruneBatches(this.#store, resolved)) {
      sum = {
        bodies: sum.bodies + bodies,
        events: sum.events + events,
        lanes: sum.lanes + lanes,
        quarantined: sum.quarantined + quarantined,
      };
      onProgress?.(sum);
      signal?.throwIfAborted();
    }
    return sum;
  }

  /** Waits for work in progress, then closes the store. Closing twice is harmless. */
  close(): Promise<void> {
    return this.#store.close();
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }
}
