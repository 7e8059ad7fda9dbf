/** An older state of an inbox takes its place while a receiver works on it, as by a restore or a failover. */
import { expect } from "vitest";
import { type Bench, deferred } from "../receiver/bench.ts";
import { inbound } from "../receiver/events.ts";

/** Keeps the inbox's state of now. What it returns puts that state back. */
export type Keep = () => Promise<() => Promise<void>>;

/**
 * `b` is lost by the restore while its handler runs. `c` then gets the ids of `b`: the end of that handler must not end `c`.
 *
 * @returns the messages in the order in which their handlers began
 */
export async function restoredUnderHandler<Tx>(
  { receiver, deliver, clock, log }: Bench<Tx>,
  keep: Keep,
): Promise<readonly string[]> {
  const gates = { a: deferred(), b: deferred(), c: deferred() };
  const begun: string[] = [];
  receiver.on("message.inbound", async ({ data }) => {
    begun.push(data.messageId);
    await gates[data.messageId as keyof typeof gates].promise;
  });
  const states = async () =>
    (await receiver.inbox.find({ order: "oldest" })).items.map(({ ownId, state }) => `${ownId} ${state}`);
  // In real time: a database answers.
  const until = (holds: () => boolean | Promise<boolean>, what: string) =>
    expect.poll(holds, { message: what, timeout: 15_000 }).toBe(true);
  const says = async (expected: readonly string[]) => expect.poll(states, { timeout: 15_000 }).toEqual(expected);
  await receiver.start();

  gates.a.resolve();
  await deliver(inbound({ messageId: "a" }));
  await says(["a done"]);
  const restore = await keep();
  await deliver(inbound({ messageId: "b" }));
  await until(() => begun.includes("b"), "the handler of b");
  await restore();
  expect((await deliver(inbound({ messageId: "c" }))).body).toBe('{"outcome":"accepted"}');
  await until(() => log.some(({ fields }) => fields.code === "inbox_replaced"), "the notice");
  // The lease of c may be of the state that was given up.
  const after = (holds: () => boolean | Promise<boolean>) => async () => {
    await clock.advance(31_000);
    return holds();
  };
  await until(
    after(() => begun.includes("c")),
    "the handler of c",
  );

  gates.b.resolve();
  await until(() => log.some(({ message }) => message.includes("lease was lost")), "the end of b's handler");
  await says(["a done", "c pending"]);
  gates.c.resolve();
  await until(
    after(async () => (await states()).includes("c done")),
    "the end of c",
  );
  // Its sender repeats it.
  expect((await deliver(inbound({ messageId: "b" }))).body).toBe('{"outcome":"accepted"}');
  await says(["a done", "c done", "b done"]);
  return begun;
}
