/** Inboxes with a million events in them, made by copying a few real ones inside SQLite: the store itself would take minutes. */
import Database from "better-sqlite3";
import type { NewEvent } from "../src/inbox/record.ts";
import { MESSAGES, openStore, turnOf } from "./store.ts";

export interface Fill {
  /** Handled events, each of a message of its own. */
  readonly handled: number;
  /** Messages whose first event is missing, each with one event that waits. */
  readonly parked: number;
  /** Messages with one event each that can be handled at once. Default 0. */
  readonly due?: number;
  /** Ids that grow with time, or ids without order. */
  readonly ids: "ordered" | "random";
}

/** Makes an inbox at `path` and copies one handled event, one parked lane and one that is due, each with its lane and body. */
export async function fillInbox(path: string, { handled, parked, due = 0, ids }: Fill): Promise<void> {
  const store = await openStore(path);
  const event = (sequence: number): NewEvent => MESSAGES[ids].event(sequence);
  const [lease] = (await store.step(turnOf({ accepts: [event(1)] }, 1))).leases;
  if (lease === undefined) throw new Error("The template was not leased.");
  await store.step(turnOf({ settles: [{ kind: "complete", lease, outcome: "handled", effects: [] }] }, 0));
  await store.step(turnOf({ accepts: [event(2)] }, 0));
  if (due > 0) await store.step(turnOf({ accepts: [event(1)] }, 0));
  await store.close();

  const db = new Database(path);
  db.pragma("journal_mode = OFF");
  db.pragma("synchronous = OFF");
  db.pragma("cache_size = -400000");
  db.transaction(() => {
    let first = due > 0 ? 4 : 3;
    for (const [index, count] of [handled, parked, due].entries()) {
      if (count > 0) copyTemplate(db, { template: index + 1, first, count, ids });
      first += count;
    }
    const rows = handled + parked + due;
    const add = db.prepare("update oncehook_counter set value = value + ? where name = ?");
    for (const name of ["next_event", "next_lane", "accepted"]) add.run(rows, name);
    add.run(handled, "handled");
    add.run(parked + due, "pending");
  })();
  db.pragma("journal_mode = WAL");
  db.close();
}

interface Copy {
  /** The lane and the event to copy: both have this id. */
  readonly template: number;
  readonly first: number;
  readonly count: number;
  readonly ids: Fill["ids"];
}

function copyTemplate(db: Database.Database, { template, first, count, ids }: Copy): void {
  const name = ids === "random" ? "'msg_' || lower(hex(randomblob(11)))" : "printf('msg_%014d', n)";
  const changes: Record<string, Record<string, string>> = {
    oncehook_lane: { id: "n", name },
    oncehook_event: { id: "n", lane: "n", digest: "randomblob(32)" },
    oncehook_body: { event: "n" },
  };
  for (const [table, changed] of Object.entries(changes)) {
    const columns = (db.pragma(`table_info(${table})`) as { name: string }[]).map(({ name }) => name);
    const values = columns.map((name) => changed[name] ?? `t.${name}`);
    const key = table === "oncehook_body" ? "event" : "id";
    db.exec(`
      with recursive number(n) as (values (${first}) union all select n + 1 from number where n < ${first + count - 1})
      insert into ${table} (${columns.join(", ")})
      select ${values.join(", ")} from number cross join (select * from ${table} where ${key} = ${template}) as t`);
  }
}
