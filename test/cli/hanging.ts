/** A receiver that takes every request and answers none. */
import { newServer } from "./place.ts";

export interface Hanging {
  readonly url: string;
  /** Resolves with its first request. */
  readonly asked: Promise<void>;
}

export async function startHanging(): Promise<Hanging> {
  let ask = () => {};
  const asked = new Promise<void>((resolve) => {
    ask = resolve;
  });
  return { url: await newServer(() => ask()), asked };
}
