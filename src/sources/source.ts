/** The seam between a receiver and the sources of its deliveries: a request goes in, a verified event with its place in the inbox comes out. */
import type { EventTypes, StoredReader } from "../inbox/handlers.ts";
import type { NewEvent, NewQuarantine } from "../inbox/record.ts";
import type { HeaderSource } from "./headers.ts";
import type { CompiledKeys, KeyringSource, KeyringSourceDeps } from "./keyring-provider.ts";

/** What the headers of a request claim, before its body is read. */
export interface Claim {
  readonly ok: true;
  /** The timestamp that is signed, epoch milliseconds. Null if the source signs none, or for an unsigned delivery. */
  readonly timestamp: number | null;
}

/** What a request shows before its body is read. */
export interface RequestParts {
  readonly headers: HeaderSource;
  /** As it was requested: a path with its query, or a whole URL. Default: no query. */
  readonly url?: string | undefined;
}

/** An answer of 2xx in the provider's own form. */
export interface SourceAnswer {
  /** 200 to 299. Default 200. */
  readonly status?: number;
  /** A text, or a value that is sent as JSON. Default: none. */
  readonly body?: string | object;
  /** Default `application/json` for a value, and `text/plain; charset=utf-8` for a text. */
  readonly contentType?: string;
}

/** Why the headers alone refuse a request. The code is for logs and counters. */
export interface Refusal {
  readonly ok: false;
  readonly code: string;
}

/** A verified delivery, as its source reads it. */
export type Reading =
  | {
      readonly kind: "event";
      /** The slot of the secret that signed it, such as `previous`. */
      readonly slot: string;
      /** As handlers receive it. */
      readonly event: object;
      /** What the inbox gets. A verifier does not ask for it: it costs a digest of the body, and calls the filter. */
      toStore(): NewEvent;
    }
  /** It is correctly signed, and not an event. */
  | { readonly kind: "no_event"; readonly quarantine: NewQuarantine }
  /** It asks for an answer, and is not stored. */
  | { readonly kind: "handshake"; readonly slot: string; readonly answer: SourceAnswer };

/** What the receiver knows of a verified delivery. */
export interface Circumstances {
  readonly headers: HeaderSource;
  /** The delivery's `traceparent`, if it was strictly valid. */
  readonly trace: string | null;
  /** Epoch milliseconds: stands in for a timestamp where none is signed. */
  readonly now: number;
  /** What the adapter's option `tenant` returned: proven where `secrets` is a function of the tenant, a name otherwise. */
  readonly tenant: string | undefined;
}

/**
 * A source with its secrets, as a receiver uses it. Nothing but `keyrings` waits.
 *
 * @typeParam Keys - compiled secrets
 * @typeParam Claimed - what `check` found in the headers
 * @typeParam Match - what `match` found out about the key
 */
export interface ConnectedSource<
  Keys extends CompiledKeys = CompiledKeys,
  Claimed extends Claim = Claim,
  Match extends object = object,
> extends StoredReader {
  readonly types: EventTypes;
  /** Bytes. */
  readonly maxBodyBytes: number;
  /** How long the sender waits for an answer, milliseconds. */
  readonly answerMs: number;
  readonly keyrings: KeyringSource<Keys>;
  /** The answer to what was stored, if the provider wants one of its own. */
  readonly accepted: SourceAnswer | null;
  /** Checks what needs no body. `now` is epoch milliseconds. */
  check(request: RequestParts, now: number): Claimed | Refusal;
  /** Why these keys can match no body. Asked before the body is read. */
  refuse(claimed: Claimed, keys: Keys): Refusal | null;
  /** Finds the key that signed the body. Null if none did: a fresher keyring may have it. */
  match(claimed: Claimed, body: Uint8Array, keys: Keys, now: number): Match | Refusal | null;
  /** Parses a body whose signature matches. Null if the key does not cover the event in it: answer it as a wrong signature. */
  read(claimed: Claimed, match: Match, body: Uint8Array, circumstances: Circumstances): Reading | null;
  /** Answers a GET. Null unless it proves who asks. Absent where only POST and PUT are allowed. */
  challenge?(request: RequestParts, keys: Keys): SourceAnswer | null;
}

/** The events of a source, as types. */
export interface SourceEvents {
  /** By their type, as `on()` takes it. */
  readonly byType: object;
  readonly any: object;
  /** What `onUnknown()` receives. */
  readonly unknown: object;
  /** What `onLate()` receives. */
  readonly late: object;
  /** How `waitFor()` names an event's lane; `never` where it cannot. */
  readonly ref: object;
}

/** A source with its secrets, as `createReceiver()` takes it. Presets of oncehook/sources make it, and what `defineSource()` returns. */
export interface WebhookSource<Events extends SourceEvents> {
  readonly preset: string;
  /** Types alone: never set. */
  readonly events?: Events;
  /** The sequence of a lane's first event; null if its lanes have no sequence. */
  readonly firstSequence: number | "any" | null;
  /** How long one delivery can be replayed, or sent again, milliseconds. */
  readonly replayMs: number;
  /**
   * Called once by the receiver.
   * @param entry - the name of its entry
   */
  connect(entry: string, deps: KeyringSourceDeps): ConnectedSource;
}
