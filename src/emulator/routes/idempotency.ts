/** Sends that are repeated with their idempotency key: what was answered, and whether it is the same send (SND-17, 18, 28 to 31). */
import { createHash } from "node:crypto";
import type { Service } from "../service.ts";
import { type IdempotencyRecord, idempotencyId } from "../state/records.ts";

/** 24 h of the emulator's time (SND-30). */
const RETENTION_MS = 86_400_000;

/** A key of a client; the route is always the same one (SND-30). */
export interface IdempotencyKey {
  readonly apiClientId: string;
  readonly key: string;
}

/** What is kept for a key: a 202, or the mark that it got its magic 500; undefined when there is nothing, or nothing any more. */
export function recall({ state }: Service, { apiClientId, key }: IdempotencyKey, now: number) {
  const record = state.idempotency.get(idempotencyId(apiClientId, key));
  return record === undefined || isOver(record, now) ? undefined : record;
}

/** Keeps an answer for a key, and forgets those whose time is over. */
export function remember(
  { state }: Service,
  { apiClientId, key }: IdempotencyKey,
  answer: Omit<IdempotencyRecord, "id">,
): void {
  const { idempotency } = state;
  const id = idempotencyId(apiClientId, key);
  // Taken out first, so that the table stays in the order of time.
  idempotency.remove(id);
  idempotency.put(id, { id, ...answer });
  for (let oldest = idempotency.oldest(); oldest !== undefined; oldest = idempotency.oldest()) {
    if (!isOver(oldest[1], answer.createdAt)) return;
    idempotency.remove(oldest[0]);
  }
}

function isOver({ createdAt }: IdempotencyRecord, now: number): boolean {
  return now >= createdAt + RETENTION_MS;
}

/** A digest that payloads have in common when their JSON is equal but for the order of keys (SND-28). */
export function fingerprintOf(payload: unknown): string {
  return createHash("sha256").update(canonicalJson(payload)).digest("hex");
}

/** JSON with the keys of each object in order. Its depth is bounded where bodies are parsed. */
function canonicalJson(value: unknown): string {
  if (typeof value !== "object" || value === null) return JSON.stringify(value);
  if (Array.isArray(value)) return `[${value.map(canonicalJson).join()}]`;
  const entries = Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1));
  return `{${entries.map(([name, field]) => `${JSON.stringify(name)}:${canonicalJson(field)}`).join()}}`;
}
