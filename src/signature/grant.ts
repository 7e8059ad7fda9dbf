/** What a secret may vouch for, from which place in the keyring, and until when. */
import type { Direction } from "./secret.ts";

/** The place in a keyring of what vouched for a delivery. */
export type Slot = "current" | "previous" | "next" | "unsigned";

/** What a key is limited to, in words that may be logged; never the id of a client. */
export type ScopeName = "any" | "inbound" | "delivery" | "client";

/** One reason to trust a key: its place in the keyring, what it covers and until when. */
export interface Grant {
  readonly slot: Slot;
  readonly scope: ScopeName;
  /** Position in the slot's list; 0 for a single secret. */
  readonly index: number;
  readonly direction: Direction | undefined;
  readonly apiClientId: string | undefined;
  /** Epoch ms at which the grant ends; `Infinity` for all but previous secrets. */
  readonly validUntil: number;
}
