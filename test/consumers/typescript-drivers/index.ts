// TypeScript with the drivers' own types: an effect gets the connection as they have it, which is what an ORM asks for.
import Database from "better-sqlite3";
import { createReceiver, type HandlerContext } from "oncehook";
import { type PgClient, postgresStore } from "oncehook/postgres";
import { type SqliteDatabase, sqliteStore } from "oncehook/sqlite";
import { type ClientBase, Pool, type PoolClient } from "pg";

const secrets = "a-consumer-secret-of-32-characters";
/** As Drizzle, Kysely, Knex and TypeORM take it. */
declare function withPg(client: ClientBase): Promise<unknown>;
declare function withPool(client: PoolClient): Promise<unknown>;
declare function withSqlite(db: Database.Database): unknown;

const pool = new Pool({ max: 4 });
createReceiver({ secrets, store: postgresStore(pool) }).onAny((event, ctx) => {
  ctx.commit((tx) => withPg(tx));
  ctx.commit((tx) => withPool(tx));
  ctx.commit(async (tx) => {
    const { rows } = await tx.query<{ id: number }>("select id from orders where message = $1", [event.eventType]);
    const id: number | undefined = rows[0]?.id;
    return id;
  });
});
export const inlined = postgresStore(new Pool({ connectionString: "postgres://db/app" }), { schema: "inbox" });
export const handle = (_event: object, ctx: HandlerContext<PoolClient>): void => ctx.commit(withPg);
createReceiver({ secrets, store: inlined }).onAny(handle);

// Without a pool there is nothing to take the type from: it is said, or it is ours.
createReceiver({ secrets, store: postgresStore<PoolClient>("postgres://db/app") }).onAny((_event, ctx) => {
  ctx.commit((tx) => withPg(tx));
});
createReceiver({ secrets, store: postgresStore("postgres://db/app") }).onAny((_event, ctx) => {
  ctx.commit((tx: PgClient) => tx.query("select 1"));
  // @ts-expect-error it has only what oncehook itself uses
  ctx.commit((tx) => withPg(tx));
});

createReceiver({ secrets, store: sqliteStore("inbox.db", { driver: Database }) }).onAny((_event, ctx) => {
  ctx.commit((tx) => withSqlite(tx));
  ctx.commit((tx) => tx.transaction(() => tx.prepare("insert into orders values (?)").run(1))());
});
const onOpen = (db: Database.Database): unknown => db.exec("create table if not exists orders (id integer)");
createReceiver({ secrets, store: sqliteStore("inbox.db", { effects: new Database("inbox.db"), onOpen }) }).onAny(
  (_event, ctx) => ctx.commit(withSqlite),
);
createReceiver({ secrets, store: sqliteStore<Database.Database>("inbox.db") }).onAny((_event, ctx) => {
  ctx.commit((tx) => withSqlite(tx));
});
createReceiver({ secrets, store: sqliteStore("inbox.db") }).onAny((_event, ctx) => {
  ctx.commit((tx: SqliteDatabase) => tx.prepare("select 1").get());
  // @ts-expect-error it has only what oncehook itself uses
  ctx.commit((tx) => withSqlite(tx));
});
