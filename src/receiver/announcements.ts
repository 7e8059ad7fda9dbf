/** Tells the application's hooks what happened to an event. A hook that throws is logged and changes nothing. */
import type { ConflictNotice, EventNotice, Hooks } from "../inbox/dispatch.ts";
import { explained, failureCode } from "../inbox/failure.ts";
import { logFieldsOf } from "../inbox/log-fields.ts";
import type { EventId } from "../inbox/record.ts";
import type { Ending } from "../inbox/settlement.ts";
import type { Waiters } from "../inbox/waiters.ts";
import type { WorkerEvents } from "../inbox/worker.ts";
import type { Logger } from "../internal/logger.ts";
import { maskNumbers } from "../internal/mask-numbers.ts";

export class Announcer implements WorkerEvents {
  readonly #hooks: () => Hooks;
  readonly #waiters: Waiters;
  readonly #logger: Logger;

  constructor(hooks: () => Hooks, waiters: Waiters, logger: Logger) {
    this.#hooks = hooks;
    this.#waiters = waiters;
    this.#logger = logger;
  }

  ended(event: EventId, ending: Ending): void {
    this.#waiters.ended(event, ending);
  }

  failed(notice: EventNotice, attempt: number, error: unknown): void {
    // A text of ours can quote a number that a handler gave.
    const said = maskNumbers(explained("A handler failed.", error));
    this.#logger.warn({ ...logFieldsOf(notice), attempt, code: failureCode(error) }, said);
    this.#call(this.#hooks().error, { ...notice, attempt, error });
  }

  deadLettered(notice: EventNotice, attempts: number, code: string): void {
    this.#logger.error({ ...logFieldsOf(notice), attempts, code }, "An event became a dead letter.");
    this.#call(this.#hooks().deadLetter, { ...notice, attempts, code });
  }

  conflict(notice: ConflictNotice): void {
    this.#logger.warn(
      logFieldsOf(notice),
      "A delivery with a known identity carried other content; it was kept and not handled.",
    );
    this.#call(this.#hooks().conflict, notice);
  }

  #call<N>(hooks: readonly ((notice: N) => unknown)[], notice: N): void {
    for (const hook of hooks) {
      Promise.resolve(notice)
        .then(hook)
        .catch((error: unknown) => this.#logger.error({ code: failureCode(error) }, "A hook threw."));
    }
  }
}
