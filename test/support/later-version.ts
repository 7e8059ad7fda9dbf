/** A later version of this package, as far as an inbox sees it: from here on this process knows one schema more. */
import type { Migration } from "../../src/stores/database.ts";
import { PG_MIGRATIONS } from "../../src/stores/postgres/migrate.ts";
import { MIGRATIONS } from "../../src/stores/sqlite/schema.ts";

const ON_SQLITE = `create table oncehook_later (id integer primary key);
  ${["event", "lane", "body", "instance", "quarantine"].map((table) => `alter table oncehook_${table} add column later text;`).join("\n")}
  create index oncehook_event_later on oncehook_event (later) where later is not null;`;

const ON_POSTGRES = `create table later (id int primary key);
  ${["event", "lane", "body", "instance", "quarantine", "tally"].map((table) => `alter table ${table} add column later int;`).join("\n")}
  create index event_later on event (later) where later is not null;`;

const LATER: readonly (readonly [Migration[], Migration])[] = [
  [MIGRATIONS as Migration[], { sql: ON_SQLITE, minReader: 1 }],
  [PG_MIGRATIONS as Migration[], { sql: ON_POSTGRES, minReader: 1 }],
];

/** Its schema only adds to the one before. Returns what undoes it: the process is of this version again. */
export function becomeLater(): () => void {
  for (const [migrations, later] of LATER) migrations.push(later);
  return () => {
    for (const [migrations, later] of LATER) if (migrations.at(-1) === later) migrations.pop();
  };
}
