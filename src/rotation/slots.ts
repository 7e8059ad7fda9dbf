/** What the steps of a rotation make of a kind's secrets; pure. */
import type { NextSecret, SecretSlots, StoredSecrets } from "../signature/secret-store.ts";

const MINUTE_MS = 60_000;
const DAY_MS = 86_400_000;
/** From a delivery's first attempt to its last retry (DLV-6): an attempt that was signed once comes so much later (DLV-17). */
const ALL_ATTEMPTS_MS = 81 * MINUTE_MS;
/** A keyring takes a previous secret for 8 days at most; a minute less, for a receiver whose clock is behind ours. */
const LONGEST_PREVIOUS_MS = 8 * DAY_MS - MINUTE_MS;

/** The secrets of a kind before anything is stored. */
export const NOTHING_STORED: StoredSecrets = {
  current: null,
  previous: [],
  next: null,
  rotatedAt: null,
  revision: 0,
};

/** A timestamp of the service, or null: it may be absent, null or 0 (WHK-16). */
export function timestampOf(value: number | null | undefined): number | null {
  return typeof value === "number" && value > 0 ? value : null;
}

/** The replaced secrets that still count. */
export function livePrevious({ previous }: SecretSlots, now: number): SecretSlots["previous"] {
  return previous.filter(({ validUntil }) => validUntil > now);
}

/** When the last of the replaced secrets ends, epoch ms; null when none counts any more. */
export function previousEnd(slots: SecretSlots, now: number): number | null {
  const ends = livePrevious(slots, now).map(({ validUntil }) => validUntil);
  return ends.length === 0 ? null : Math.max(...ends);
}

/** All texts that vouch for a delivery now. */
export function liveSecrets(slots: SecretSlots, now: number): readonly string[] {
  const { current, next } = slots;
  return [
    ...(current === null ? [] : [current]),
    ...livePrevious(slots, now).map(({ secret }) => secret),
    ...(next === null ? [] : [next.secret]),
  ];
}

/**
 * Until when a replaced secret counts. The service may sign with it to the last moment of its own window, keep that signature
 * for all retries, and the receiver takes it while it is not older than its tolerance.
 */
export function validityOf(
  replaced: { readonly serviceEnd: number | null; readonly toleranceMs: number },
  now: number,
): { readonly validUntil: number; readonly isCutShort: boolean } {
  const wanted = Math.max(now, replaced.serviceEnd ?? 0) + ALL_ATTEMPTS_MS + replaced.toleranceMs;
  const validUntil = Math.min(wanted, now + LONGEST_PREVIOUS_MS);
  return { validUntil, isCutShort: validUntil < wanted };
}

/** A rotation begins. */
export function withNext(slots: SecretSlots, next: NextSecret, now: number): SecretSlots {
  return { current: slots.current, previous: livePrevious(slots, now), next, rotatedAt: slots.rotatedAt };
}

/**
 * The same secrets as they were before the last rotation's last step, if there was one: `next` for what is `current` now. Who uses these
 * accepts exactly what is accepted now.
 */
export function beforeLastStep(slots: SecretSlots): SecretSlots | null {
  const { current, previous, next, rotatedAt } = slots;
  if (current === null || next !== null) return null;
  const [replaced, ...older] = previous;
  const then = { secret: current, since: 0, rotatedAtBefore: null, hadSecret: replaced !== undefined };
  return { current: replaced?.secret ?? null, previous: older, next: then, rotatedAt };
}

/** Which secret becomes the current one, what becomes of the one it replaces, and the rotation that ends with it. */
export interface Replacement {
  readonly secret: string;
  readonly validUntil: number;
  readonly next: NextSecret | null;
  /** When that was, as the service shows it. */
  readonly rotatedAt: number | null;
  readonly now: number;
}

/** `secret` is what the service signs with. */
export function withCurrent(
  slots: SecretSlots,
  { secret, validUntil, next, rotatedAt, now }: Replacement,
): SecretSlots {
  const others = livePrevious(slots, now).filter((previous) => previous.secret !== secret);
  const replaced = slots.current === null || slots.current === secret ? [] : [{ secret: slots.current, validUntil }];
  return { current: secret, previous: [...replaced, ...others], next, rotatedAt };
}

/** `secret` is what the service signed with for a moment, before another rotation replaced it, perhaps with the same one. */
export function withPrevious(slots: SecretSlots, { secret, validUntil, next, now }: Replacement): SecretSlots {
  const others = livePrevious(slots, now).filter((previous) => previous.secret !== secret);
  const replaced = slots.current === secret ? [] : [{ secret, validUntil }];
  return { current: slots.current, previous: [...replaced, ...others], next, rotatedAt: slots.rotatedAt };
}
