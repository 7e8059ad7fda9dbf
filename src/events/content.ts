/** Whether two bodies say the same: a retry that was serialised again is no conflict. */
import { isRecord } from "../internal/type-guards.ts";
import { readJson } from "./structure.ts";

/**
 * Whether two bodies hold the same JSON value: key order, white space and escapes aside, numbers compared as parsed (so `0`
 * and `-0` are the same, as serialising again turns one into the other). False when either is not strict JSON.
 */
export function sameContent(a: Uint8Array, b: Uint8Array): boolean {
  const left = readJson(a);
  const right = readJson(b);
  return left.ok && right.ok && sameValue(left.value, right.value);
}

function sameValue(a: unknown, b: unknown): boolean {
  if (Array.isArray(a)) return Array.isArray(b) && sameElements(a, b);
  if (isRecord(a)) return isRecord(b) && sameFields(a, b);
  return a === b;
}

function sameElements(a: readonly unknown[], b: readonly unknown[]): boolean {
  return a.length === b.length && a.every((element, index) => sameValue(element, b[index]));
}

function sameFields(a: Readonly<Record<string, unknown>>, b: Readonly<Record<string, unknown>>): boolean {
  const names = Object.keys(a);
  return (
    names.length === Object.keys(b).length &&
    names.every((name) => Object.hasOwn(b, name) && sameValue(a[name], b[name]))
  );
}
