/** An inbox as the first version left it: its schema, and events that were acknowledged and not handled. */
import Database from "better-sqlite3";
import { MIGRATIONS } from "../../src/stores/sqlite/migrate.ts";
import { createFakeClock } from "../../src/testing/fake-clock.ts";
import { BEGIN, deliver, deliveriesOf, PHASES } from "./deliveries.ts";
import { receiverOn } from "./receiver.ts";

/** Makes it at `path`, which is free. Later schemas only added to the first, so they are taken away again. */
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
  const db = new Database(path);
  const first = new Database(":memory:");
  try {
    first.exec(MIGRATIONS[0]?.sql ?? "");
    const named = "select type, name from sqlite_master where name like 'oncehook%'";
    const names = new Set((first.prepare(named).all() as Named[]).map(({ name }) => name));
    const added = (db.prepare(named).all() as Named[]).filter(({ name }) => !names.has(name));
    if (added.length === 0) throw new Error("No later schema added anything.");
    for (const { type, name } of added) db.exec(`drop ${type} if exists ${name}`);
    db.prepare("update oncehook_meta set value = 1 where key in ('schema', 'min_reader')").run();
  } finally {
    first.close();
    db.close();
  }
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

export const NEWEST_SCHEMA = MIGRATIONS.length;

interface Named {
  readonly type: string;
  readonly name: string;
}
