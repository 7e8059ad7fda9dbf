/** Magic recipients: numbers to send to for what a test needs to see. Off with `magic: false`. */

/** What a magic recipient does to its message, or to the answer of the call that sends to it. */
export type Behaviour =
  | "failAfterQueued"
  | "failAfterSent"
  | "failWithGap"
  | "stayQueued"
  | "twice"
  | "reversed"
  | "late"
  | "answer"
  | "rejected"
  | "errorOnce"
  | "resetOnce"
  | "slow";

export interface MagicRecipient {
  readonly behaviour: Behaviour;
  /** For the documentation. */
  readonly does: string;
}

/** All of them, by their number. */
export const MAGIC_RECIPIENTS: Readonly<Record<string, MagicRecipient>> = {
  "+15005550001": { behaviour: "failAfterQueued", does: "fails after queued: `message.failed` with sequence 2" },
  "+15005550002": { behaviour: "failAfterSent", does: "fails after sent: `message.failed` with sequence 3" },
  "+15005550003": { behaviour: "failWithGap", does: "fails after sent with sequence 4: sequence 3 never comes" },
  "+15005550004": { behaviour: "stayQueued", does: "stays queued: nothing follows `message.queued`" },
  "+15005550005": { behaviour: "twice", does: "every event is handed over twice" },
  "+15005550006": { behaviour: "reversed", does: "the events come in reversed order" },
  "+15005550007": { behaviour: "late", does: "every event comes 90 minutes late" },
  "+15005550008": { behaviour: "answer", does: "answers with a `message.inbound` once it was delivered" },
  "+15005550009": {
    behaviour: "rejected",
    does: "there is none: the recipient is rejected although its number is valid, with the code of the reading `rejectionCode` (`INVALID_RECIPIENT`)",
  },
  "+15005550011": { behaviour: "errorOnce", does: "the send gets 500 once per idempotency key, then 202" },
  "+15005550012": {
    behaviour: "resetOnce",
    does: "the send is accepted, but its connection breaks; a retry with the same key gets the 202",
  },
  "+15005550013": { behaviour: "slow", does: "the answer to the send takes 30 s of real time" },
};

/** What a recipient does out of the ordinary; null for most. */
export function behaviourOf(to: string, settings: { readonly magic: boolean }): Behaviour | null {
  return (settings.magic ? MAGIC_RECIPIENTS[to]?.behaviour : undefined) ?? null;
}
