/** Large inboxes, made by copying messages inside SQLite: a receiver would take minutes for a million events. */
import Database from "better-sqlite3";
import { PermanentError } from "../../../../../src/errors.ts";
import { createReceiver } from "../../../../../src/index.ts";
import { silentLogger } from "../../../../../src/internal/logger.ts";
import { sqliteStore } from "../../../../../src/stores/sqlite.ts";
import { deliver, lifecycle, TEST_SECRET } from "../../../../../src/tools/testing/index.ts";

export interface Fill {
  /** Messages of three handled events. */
  readonly messages: number;
  /** Messages of three events, the second of them a dead letter. */
  readonly dead: number;
}

const EVENTS_A_MESSAGE = 3;
const HOUR_MS = 3_600_000;
/** The copies came over this time, up to an hour ago. */
const SPREAD_MS = 6 * 24 * HOUR_MS;

/** The id of a copy. */
export function copiedId(number: number): string {
  return `msg_copy${String(number).padStart(8, "0")}`;
}

/** The reference of a copy. */
export function copiedReference(number: number): string {
  return `copy-${number}`;
}

/** Makes an inbox at `path` whose events are all of the past; the dead letters are its newest. */
export async function fillWithCopies(path: string, { messages, dead }: Fill): Promise<void> {
  await makeTemplates(path);
  const db = new Database(path);
  db.pragma("journal_mode = OFF");
  db.pragma("synchronous = OFF");
  db.pragma("cache_size = -400000");
  db.transaction(() => {
    // The templates are the first two lanes, with the first six events.
    copy(db, { template: 1, first: 3, count: messages, of: messages + dead });
    copy(db, { template: 2, first: 3 + messages, count: dead, of: messages + dead });
    count(db, { messages, dead });
  })();
  db.pragma("journal_mode = WAL");
  db.close();
}

async function makeTemplates(path: string): Promise<void> {
  const receiver = createReceiver({ secrets: TEST_SECRET, store: sqliteStore(path), logger: silentLogger });
  receiver.onAny((event) => {
    if (event.eventType === "message.sent" && event.messageId === "msg_template_2")
      throw new PermanentError("No order with this reference.");
  });
  for (const messageId of ["msg_template_1", "msg_template_2"])
    for (const event of lifecycle({ messageId })) await deliver(receiver, event);
  await receiver.stop();
}

interface Copy {
  readonly template: number;
  /** The id of the first lane. */
  readonly first: number;
  readonly count: number;
  readonly of: number;
}

/** Lane n gets the events 3n - 2 to 3n. */
function copy(db: Database.Database, { template, first, count: lanes, of }: Copy): void {
  const now = Date.now() - HOUR_MS;
  const event = `n * ${EVENTS_A_MESSAGE} - ${EVENTS_A_MESSAGE * template} + t.`;
  const then = `${now} - cast((${of} + 2 - n) * ${SPREAD_MS / of} as integer)`;
  const moved = (column: string) => `t.${column} - t.accepted + ${then}`;
  const changes: Record<string, Record<string, string>> = {
    oncehook_lane: {
      id: "n",
      name: "printf('msg_copy%08d', n)",
      reference: "'copy-' || n",
      peer: "printf('+1415%07d', n)",
    },
    oncehook_event: {
      id: `${event}id`,
      lane: "n",
      digest: "randomblob(32)",
      ...Object.fromEntries(["accepted", "started", "finished", "signed"].map((column) => [column, moved(column)])),
    },
    oncehook_body: { event: `${event}event` },
    oncehook_attempt: { id: `n * ${EVENTS_A_MESSAGE}`, event: `${event}event`, at: then },
  };
  for (const [table, changed] of Object.entries(changes)) {
    const columns = (db.pragma(`table_info(${table})`) as { name: string }[]).map(({ name }) => name);
    const values = columns.map((name) => changed[name] ?? `t.${name}`);
    db.exec(
      `
      with recursive number(n) as (values (${first}) union all select n + 1 from number where n < ${first + lanes - 1})
      insert into ${table} (${columns.join(", ")})
      select ${values.join(", ")} from number cross join (select * from ${table} where ${OF_TEMPLATE[table]}) as t`.replaceAll(
        "$lane",
        String(template),
      ),
    );
  }
}

const OF_TEMPLATE: Readonly<Record<string, string>> = {
  oncehook_lane: "id = $lane",
  oncehook_event: "lane = $lane",
  oncehook_body: "event in (select id from oncehook_event where lane = $lane)",
  oncehook_attempt: "event in (select id from oncehook_event where lane = $lane)",
};

function count(db: Database.Database, { messages, dead }: Fill): void {
  const add = db.prepare("update oncehook_counter set value = value + ? where name = ?");
  const events = EVENTS_A_MESSAGE * (messages + dead);
  const counts = { next_event: events, accepted: events, next_lane: messages + dead, dead, dead_lettered: dead };
  for (const [name, value] of Object.entries({ ...counts, handled: events - dead })) add.run(value, name);
}
