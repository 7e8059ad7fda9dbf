/** Tells the application's hooks and the log what happened to an event. A hook that throws is logged and changes nothing. */
import type { WebhookEvent } from "../events/types.ts";
import type { AttemptFailure, WorkerEvents } from "../inbox/conclusions.ts";
import type { ConflictNotice, EventNotice, Hooks } from "../inbox/dispatch.ts";
import { errorFields, explained } from "../inbox/failure.ts";
import { logFieldsOf } from "../inbox/log-fields.ts";
import type { EventId, LaneId } from "../inbox/record.ts";
import type { Ending } from "../inbox/settlement.ts";
import type { Waiters } from "../inbox/waiters.ts";
import { type Logger, maskNumbers } from "../internal/logger.ts";
import type { GapLog } from "./gap-log.ts";

const HOOKS = { conflict: "onConflict", error: "onError", deadLetter: "onDeadLetter" } as const satisfies Record<
  keyof Hooks,
  string
>;

export interface AnnouncerOptions {
  readonly hooks: () => Hooks;
  readonly waiters: Waiters;
  readonly gaps: GapLog;
  readonly logger: Logger;
  /** Another process can open the inbox, as the command line does. */
  readonly isShared: boolean;
}

export class Announcer implements WorkerEvents {
  readonly #options: AnnouncerOptions;

  constructor(options: AnnouncerOptions) {
    this.#options = options;
  }

  ended(event: EventId, ending: Ending): void {
    this.#options.waiters.ended(event, ending);
  }

  waits(lane: LaneId): void {
    this.#options.gaps.began(lane);
  }

  claimed(lane: LaneId): void {
    this.#options.gaps.ended(lane);
  }

  failed(notice: EventNotice, { attempt, error, event }: AttemptFailure): void {
    // A text of ours can quote a number that a handler gave.
    const said = maskNumbers(explained("A handler failed.", error));
    const fields = { ...logFieldsOf(notice), attempt, ...errorFields(error, event) };
    this.#options.logger.warn({ ...fields, more: this.#more("onError", notice) }, said);
    this.#call("error", { ...notice, attempt, error }, () => event);
  }

  deadLettered(notice: EventNotice, attempts: number, code: string, event: () => WebhookEvent | null): void {
    const fields = { ...logFieldsOf(notice), attempts, code, more: this.#more("onDeadLetter", notice) };
    this.#options.logger.error(fields, "An event became a dead letter.");
    this.#call("deadLetter", { ...notice, attempts, code }, event);
  }

  conflict(notice: ConflictNotice, event: () => WebhookEvent | null): void {
    this.#options.logger.warn(
      { ...logFieldsOf(notice), more: this.#more("onConflict", notice) },
      "A delivery with a known identity carried other content; it was kept and not handled.",
    );
    this.#call("conflict", notice, event);
  }

  /** Where to find more about an event than the log has. */
  #more(hook: string, { eventId }: EventNotice): string {
    return this.#options.isShared ? `${hook}, or oncehook inbox show ${eventId}` : hook;
  }

  /** @param event - asked only when a hook throws: its error may quote the event */
  #call<H extends keyof Hooks>(
    hook: H,
    notice: Parameters<Hooks[H][number]>[0],
    event: () => WebhookEvent | null,
  ): void {
    for (const listener of this.#options.hooks()[hook] as readonly ((notice: unknown) => unknown)[]) {
      Promise.resolve(notice)
        .then(listener)
        .catch((error: unknown) => {
          const fields = { ...logFieldsOf(notice), hook: HOOKS[hook], ...errorFields(error, event()) };
          this.#options.logger.error(fields, "A hook threw.");
        });
    }
  }
}
