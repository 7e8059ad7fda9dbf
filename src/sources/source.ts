/** The seam between a receiver and the sources of its deliveries: a request goes in, a verified event with its place in the inbox comes out. */
import type { EventTypes, StoredReader } from "../inbox/handlers.ts";
import type { EventRef, LaneKey } from "../inbox/lane-key.ts";
import type { NewEvent, NewQuarantine } from "../inbox/record.ts";
import type { RequestHead } from "./headers.ts";
import type { KeyringSource, KeyringSourceDeps } from "./keyring-provider.ts";
import type { SourceKey, SourceKeys } from "./keys.ts";

/** An answer of 2xx in the provider's own form. */
export interface SourceAnswer {
  /** 200 to 299. Default 200. */
  readonly status?: number;
  /** A text, or a value that is sent as JSON. Default: none. */
  readonly body?: string | object;
  /** Default `application/json` for a value, and `text/plain; charset=utf-8` for a text. */
  readonly contentType?: string;
}

/** Why a request is refused. The code is for logs and counters. */
export interface Refusal {
  readonly ok: false;
  readonly code: string;
}

/** What was found out about the key that signed a body. */
export interface Match {
  readonly ok: true;
  readonly key: SourceKey;
  /** Epoch milliseconds. Null if no time is signed. */
  readonly signedAt: number | null;
  /** What the signature covers besides the body. */
  readonly proven?: string;
}

/** A verified delivery, as its source reads it. */
export type Reading =
  | {
      readonly kind: "event";
      /** The slot of the secret that signed it. */
      readonly slot: string;
      /** As handlers receive it. */
      readonly event: object;
      /** Its tenant is that of the key, and not one that its bytes name. */
      readonly isOfKey: boolean;
      /** What the inbox gets. A verifier does not ask for it: it calls the filter. */
      toStore(): NewEvent;
    }
  /** It is correctly signed, and not an event. */
  | { readonly kind: "no_event"; readonly quarantine: NewQuarantine }
  /** It asks for an answer, and is not stored. */
  | { readonly kind: "handshake"; readonly slot: string; readonly answer: SourceAnswer };

/** What the receiver knows of a verified delivery. */
export interface Circumstances {
  /** The delivery's `traceparent`, if it was strictly valid. */
  readonly trace: string | null;
  /** Epoch milliseconds: stands in for a timestamp where none is signed. */
  readonly now: number;
}

/** A lane, or an event by itself, that `waitFor()` may mean. */
export type Wanted = LaneKey | EventRef;

/** A source with its secrets, as a receiver uses it. Nothing but `keyrings` waits. */
export interface ConnectedSource extends StoredReader {
  readonly types: EventTypes;
  /** Bytes. */
  readonly maxBodyBytes: number;
  /** How long the sender waits for an answer, milliseconds. */
  readonly answerMs: number;
  readonly keyrings: KeyringSource;
  /** Its secrets can be rotated by kind, so a process reports which it uses. */
  readonly hasKinds: boolean;
  /** The answer to what was stored, if the provider wants one of its own. */
  readonly accepted: SourceAnswer | null;
  /** Why the headers alone refuse a request. Asked before the secrets are read, and again with them, before the body is read. */
  refuse(head: RequestHead, keys: SourceKeys | null): Refusal | null;
  /** Finds the key that signed the body. Null if none did: a fresher keyring may have it. */
  match(head: RequestHead, body: Uint8Array, keys: readonly SourceKey[], now: number): Match | Refusal | null;
  /** Parses a body whose signature matches. Null if the key does not cover the event in it: answer it as a wrong signature. */
  read(head: RequestHead, match: Match, body: Uint8Array, circumstances: Circumstances): Reading | null;
  /** Answers a GET. Null unless it proves who asks. Absent where only POST and PUT are allowed. */
  challenge?(head: RequestHead, keys: readonly SourceKey[]): SourceAnswer | null;
  /** Where the events may be that `waitFor()` names. Absent where it names none. @throws SetupError for what is not a name */
  lookUp?(ref: unknown): readonly Wanted[];
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

/** What a source is connected with. */
export interface ConnectDeps extends KeyringSourceDeps {
  /** Nothing is stored: every delivery needs a signature. */
  readonly onlySigned?: boolean;
}

/** A source with its secrets, as `createReceiver()` takes it. Presets of oncehook/sources make it, and what `defineSource()` returns. */
export interface WebhookSource<Events extends SourceEvents> {
  readonly preset: string;
  /** Types alone: never set. */
  readonly events?: Events;
  /** How long one delivery can be replayed, or sent again, milliseconds. */
  readonly replayMs: number;
  /**
   * Called once by the receiver.
   * @param entry - the name of its entry
   */
  connect(entry: string, deps: ConnectDeps): ConnectedSource;
}
