/** ORMs on a Postgres inbox: what they write through `ctx.commit` is there exactly once, however often the process dies. */
import pg from "pg";
import { postgresStore } from "../../../src/stores/postgres.ts";
import { startPostgres } from "../../stores/postgres/server.ts";
import type { Proof, Terms } from "../programme.ts";
import { flawsOf, type Outcome, underDeaths } from "./apps.ts";

const APPS = ["pg", "drizzle", "kysely", "knex", "typeorm", "prisma"] as const;
const CONTROL = "careless";

const EVENTS = { short: 24, full: 200 } as const;

export async function onPostgres({ full, say }: Terms): Promise<Proof> {
  const events = full ? EVENTS.full : EVENTS.short;
  const server = await startPostgres();
  const problems: string[] = [];
  let count = 0;
  try {
    for (const app of APPS) {
      const outcome = await tried(server.url, app, events);
      say(`${app.padEnd(10)} on Postgres ${JSON.stringify(outcome)}`);
      problems.push(...flawsOf(`${app} on Postgres`, outcome));
      count += outcome.acknowledged;
    }
    const control = await tried(server.url, CONTROL, EVENTS.short);
    say(`${CONTROL.padEnd(10)} on Postgres ${JSON.stringify(control)}`);
    if (control.doubled === 0) problems.push("what is written past ctx.commit was not seen to be doubled");
    return { count, unit: "events", problems };
  } finally {
    await server.stop();
  }
}

async function tried(server: string, app: string, events: number): Promise<Outcome> {
  const url = await newDatabase(server, app);
  const schema = "inbox";
  return underDeaths({
    ...{ app: `${app}-postgres`, events, place: { url, schema, path: "" } },
    store: () => postgresStore(url, { schema }),
    rows: async () => (await sql(url, "select identity from orders")).map(({ identity }) => String(identity)),
  });
}

/** A database of the application's own, with its table. */
async function newDatabase(server: string, app: string): Promise<string> {
  await sql(server, `create database ${app}`);
  const url = new URL(server);
  url.pathname = `/${app}`;
  await sql(
    url.href,
    "create table handled (identity text primary key); create table orders (id integer generated always as identity primary key, identity text not null)",
  );
  return url.href;
}

async function sql(connectionString: string, text: string): Promise<readonly pg.QueryResultRow[]> {
  const client = new pg.Client({ connectionString });
  await client.connect();
  try {
    return (await client.query(text)).rows;
  } finally {
    await client.end();
  }
}
