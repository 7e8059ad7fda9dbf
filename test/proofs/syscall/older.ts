/** An inbox as this version leaves it to a later one: its schema, and events that were acknowledged and not handled. */
import Database from "better-sqlite3";
import { createFakeClock } from "../../../src/testing/fake-clock.ts";
import { BEGIN, deliver, deliveriesOf, PHASES } from "./deliveries.ts";
import { receiverOn } from "./receiver.ts";

/** Makes it at `path`, which is free. */
export async function makeOlderInbox(path: string, seed: number): Promise<void> {
  const clock = createFakeClock(BEGIN - 60_000);
  const { receiver } = receiverOn(path, clock);
  const refused: number[] = [];
  await deliver(receiver, deliveriesOf(seed, PHASES.before), {
    clock,
    answered: (_event, status) => status !== 200 && refused.push(status),
  });
  await receiver.stop();
  if (refused.length > 0) throw new Error(`The older inbox answered ${refused.join(", ")}.`);
}

/** The schema that the file at `path` has. */
export function schemaOf(path: string): number {
  const db = new Database(path, { readonly: true });
  try {
    return Number(db.prepare("select value from oncehook_meta where key = 'schema'").pluck().get());
  } finally {
    db.close();
  }
}
