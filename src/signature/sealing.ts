/** Sealing: how secrets become bytes that may lie in a database. */

/** Seals and opens what a secret store keeps. Give your own to have a key management service do it. */
export interface Sealing {
  /** `context` names what is sealed, such as `oncehook secret delivery`: bind it, so that one entry can not stand for another. */
  seal(plain: Uint8Array, context: string): Uint8Array | Promise<Uint8Array>;
  /** Throws or rejects when `sealed` was not made by `seal` with the same key and context. */
  open(sealed: Uint8Array, context: string): Uint8Array | Promise<Uint8Array>;
}
