/** Keeps one inbox and one worker when Next.js evaluates a module again: on a reload, or once for each of its bundles. */
import type { Receiver } from "../src/index.ts";

const RECEIVERS = Symbol.for("oncehook.receivers");
/** Receivers in memory share nothing but this address, which says nothing about which inbox is meant. */
const MEMORY_SUFFIX = "@memory:";

/** The latest receiver for each name and store, by `receiver.key`. */
type KnownReceivers = Map<string, unknown>;

/**
 * The newest receiver of a name and store goes on with the inbox and worker of the one before, and with its own handlers.
 * Register the handlers first. Nothing happens for another copy of this package, whose inner parts this one cannot see.
 */
export function keepAcrossReloads<Tx>(receiver: Receiver<Tx>): void {
  if (receiver.key.endsWith(MEMORY_SUFFIX)) return;
  const known = knownReceivers();
  const previous = known.get(receiver.key);
  if (previous === receiver) return;
  if (isSameKind(previous, receiver)) receiver.takeOver(previous);
  known.set(receiver.key, receiver);
}

/** The same key means the same kind of store, so the transaction type is the same too. */
function isSameKind<Tx>(previous: unknown, receiver: Receiver<Tx>): previous is Receiver<Tx> {
  return previous instanceof receiver.constructor;
}

/** The one place outside the module's own scope, which a reload does not clear. */
function knownReceivers(): KnownReceivers {
  const holder = globalThis as { [RECEIVERS]?: KnownReceivers };
  holder[RECEIVERS] ??= new Map();
  return holder[RECEIVERS];
}
