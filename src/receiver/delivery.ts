/** One delivery on its way through the checks, and what is told of it once it is answered. */
import type { DeliveryOutcome, DeliveryReport } from "../inbox/instrumentation.ts";
import { acceptedOutcome } from "./answers.ts";
import type { Answer, IncomingWebhook } from "./incoming.ts";

/** Noted on the way, for whoever watches. */
export class Delivery {
  readonly incoming: IncomingWebhook;
  /** Why it was not accepted as an event. */
  reason: string | null = null;
  /** The slot of the secret that vouches for it. */
  slot: string | null = null;
  /** A duplicate with other content. */
  conflict = false;
  /** Below its message's cursor. */
  late = false;
  /** Nothing of its body is left to come: else the connection can not be kept. */
  isRead = false;

  constructor(incoming: IncomingWebhook) {
    this.incoming = incoming;
  }

  report(answer: Answer, durationMs: number): DeliveryReport {
    const { reason, slot, late } = this;
    return { outcome: this.#outcome(answer), status: answer.status, reason, slot, late, durationMs };
  }

  #outcome(answer: Answer): DeliveryOutcome {
    if (this.conflict && answer.status === 200) return "conflict";
    return acceptedOutcome(answer) ?? (answer.status < 500 ? "refused" : "failed");
  }
}
