/** What people try first with an ORM that waits, or with a connection of its own: each is refused, and nothing is written. */
import "reflect-metadata";
import { monitorEventLoopDelay } from "node:perf_hooks";
import { setTimeout as sleep } from "node:timers/promises";
import { PrismaBetterSqlite3 } from "@prisma/adapter-better-sqlite3";
import Database from "better-sqlite3";
import { drizzle } from "drizzle-orm/better-sqlite3";
import { integer, sqliteTable, text } from "drizzle-orm/sqlite-core";
import createKnex from "knex";
import { type Generated, Kysely, SqliteDialect } from "kysely";
import { createReceiver, type InboxStore } from "oncehook";
import { sqliteStore } from "oncehook/sqlite";
import { deliver, fixtures, TEST_SECRET } from "oncehook/testing";
import { PrismaClient } from "prisma-client-sqlite";
import { Column, DataSource, Entity, PrimaryGeneratedColumn } from "typeorm";
import { assignment } from "./serve.ts";

@Entity("orders")
class Order {
  @PrimaryGeneratedColumn()
  id!: number;
  @Column("text")
  identity!: string;
}

interface Tables {
  orders: { id: Generated<number>; identity: string };
}

type Tx = Database.Database;
type Trial = readonly [what: string, effect: (tx: Tx) => unknown];

const { path } = assignment;
const identity = "past";
const orders = sqliteTable("orders", { id: integer().primaryKey(), identity: text().notNull() });
const own = new Database(path);
const kyselyOn = (database: Tx) => new Kysely<Tables>({ dialect: new SqliteDialect({ database }) });
const drizzleOn = async (database: Tx) => {
  await drizzle(database).insert(orders).values({ identity });
};
const knex = createKnex({ client: "better-sqlite3", connection: { filename: path }, useNullAsDefault: true });
const prisma = new PrismaClient({ adapter: new PrismaBetterSqlite3({ url: `file:${path}` }) });
const source = await new DataSource({ type: "better-sqlite3", database: path, entities: [Order] }).initialize();

/** On connections of their own, without a word to the store. */
const forgotten: readonly Trial[] = [
  ["drizzle", () => drizzle(own).insert(orders).values({ identity }).run()],
  ["kysely", () => kyselyOn(own).insertInto("orders").values({ identity }).execute()],
  ["knex", async () => await knex("orders").insert({ identity })],
  ["typeorm", () => source.manager.insert(Order, { identity })],
  ["prisma", () => prisma.order.create({ data: { identity } })],
];

/** On the effect's connection, as if its transaction waited. */
const waiting: readonly Trial[] = [
  ["drizzle", async (tx) => await drizzle(tx).insert(orders).values({ identity })],
  ["drizzle, not run", (tx) => drizzle(tx).insert(orders).values({ identity })],
  ["drizzle, an array", (tx) => [drizzle(tx).insert(orders).values({ identity })]],
  ["drizzle in a function", (tx) => drizzleOn(tx)],
  ["drizzle, left behind", (tx) => Promise.race([drizzleOn(tx), sleep(1)])],
  ["kysely", (tx) => kyselyOn(tx).insertInto("orders").values({ identity }).execute()],
];

/** On the connection that is the store's option `effects`. */
const effects: readonly Trial[] = [
  ["drizzle in a function", () => drizzleOn(own)],
  ["drizzle, not run", () => drizzle(own).insert(orders).values({ identity })],
  ["kysely", () => kyselyOn(own).insertInto("orders").values({ identity }).execute()],
];

async function outcomes(place: string, store: InboxStore<Tx>, trials: readonly Trial[]): Promise<string[]> {
  const receiver = createReceiver({ secrets: TEST_SECRET, store, maxAttempts: 1 });
  const found: string[] = [];
  let effect: Trial[1] = () => {};
  receiver.onAny((_event, ctx) => ctx.commit(effect));
  for (const [what, tried] of trials) {
    effect = tried;
    const { state } = await deliver(receiver, fixtures.queued({ messageId: `${place} ${what}` }));
    // What follows from it, if anything does, has its time.
    await sleep(50);
    const rows = own.prepare("select count(*) from orders").pluck().get();
    if (state !== "dead" || rows !== 0) found.push(`${place}, ${what}: ${state}, ${rows} rows`);
  }
  await receiver.stop();
  return found;
}

const delays = monitorEventLoopDelay();
delays.enable();
const found = [
  ...(await outcomes("on its own connection", sqliteStore(path, { driver: Database }), forgotten)),
  ...(await outcomes("on the effect's connection", sqliteStore(path, { driver: Database }), waiting)),
  ...(await outcomes("on the option effects", sqliteStore(path, { effects: own }), effects)),
];
delays.disable();
const refused = forgotten.length + waiting.length + effects.length - found.length;
console.log(JSON.stringify({ refused, found, longestStallMs: Math.round(delays.max / 1e6) }));
process.exit(0);
