/** What something that must fail is rejected with. */
import { inspect } from "node:util";

type Kind<E> = abstract new (...args: never[]) => E;

/** What `work` is rejected with; of that kind, when one is given. Whatever else becomes of it fails the test. */
export function failureOf<E>(work: PromiseLike<unknown>, kind: Kind<E>): Promise<E>;
export function failureOf(work: PromiseLike<unknown>): Promise<unknown>;
export async function failureOf<E>(work: PromiseLike<unknown>, kind?: Kind<E>): Promise<unknown> {
  let value: unknown;
  try {
    value = await work;
  } catch (error) {
    if (kind === undefined || error instanceof kind) return error;
    throw error;
  }
  throw new Error(`It was expected to fail, and gave ${inspect(value)}.`);
}
