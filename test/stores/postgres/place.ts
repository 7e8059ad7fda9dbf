/** A schema of each test's own on the tests' server, stores in it, and a receiver behind real HTTP. */
import { createServer } from "node:http";
import type { Socket } from "node:net";
import pg from "pg";
import { inject, onTestFinished } from "vitest";
import { nodeWebhook } from "../../../adapters/node.ts";
import { createReceiver, type InboxStore, type Receiver, type ReceiverOptions } from "../../../src/index.ts";
import { silentLogger } from "../../../src/internal/logger.ts";
import type { SecretStore } from "../../../src/sources/messaging/secret-store.ts";
import {
  type PgClient,
  type PgPool,
  type PgQuery,
  type PgResult,
  type PostgresSecretsOptions,
  postgresSecrets,
  postgresStore,
} from "../../../src/stores/postgres.ts";
import { signedRequest, TEST_SECRET } from "../../../src/tools/testing/deliver.ts";
import { listenOnLoopback } from "../../support/loopback.ts";

let places = 0;

/** A name that is free, as a schema or a database; the schema goes with the test. */
export function newSchema(): string {
  const schema = `place_${process.pid}_${++places}`;
  onTestFinished(() => drop(schema));
  return schema;
}

/** The server may not have ended the transaction of a killed process yet: then one of the two is a deadlock's victim. */
async function drop(schema: string): Promise<void> {
  const dropping = () => sql(`drop schema if exists ${schema} cascade`);
  await dropping().catch((error: { readonly code?: unknown }) => {
    if (error.code !== "40P01") throw error;
    return dropping();
  });
}

/** A pool of the application's own. */
export function newPool(options: pg.PoolConfig = {}): PgPool & pg.Pool {
  const pool = new pg.Pool({ connectionString: inject("postgresUrl"), max: 4, ...options });
  pool.on("error", () => {});
  onTestFinished(() => pool.end());
  // pg's own types say more than is needed here.
  return pool as PgPool & pg.Pool;
}

/** What pg has beside what the store takes of it. */
export type Connection = PgClient & { readonly processID: number; readonly connection: { readonly stream: Socket } };

/** Has each statement of the pool's connections sent by `instead`, which may also change it, or fail. */
export function tapped(
  pool: pg.Pool,
  instead: (asked: PgQuery, send: (asked?: PgQuery) => Promise<PgResult>, client: Connection) => Promise<PgResult>,
): void {
  pool.on("connect", (client) => {
    const query: (...asked: readonly unknown[]) => Promise<PgResult> = client.query.bind(client) as never;
    client.query = ((asked: PgQuery | string, ...more: readonly unknown[]) => {
      if (typeof asked === "string") return query(asked, ...more);
      return instead(asked, (changed = asked) => query(changed, ...more), client as unknown as Connection);
    }) as never;
  });
}

/** Secrets, by default over a pool of their own, as on another machine; closed after the test. */
export function secretsIn(options: PostgresSecretsOptions, database: string | PgPool = newPool()): SecretStore {
  const secrets = postgresSecrets(database, options);
  onTestFinished(() => secrets.close());
  return secrets;
}

/** One statement of the superuser, on a connection of its own. */
export async function sql(text: string, url: string = inject("postgresUrl")): Promise<readonly pg.QueryResultRow[]> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    return (await client.query(text)).rows;
  } finally {
    await client.end();
  }
}

/** The tests' server, as another role or database. */
export function urlOf(change: { readonly user?: string; readonly database?: string; readonly port?: number }): string {
  const url = new URL(inject("postgresUrl"));
  if (change.user !== undefined) url.username = change.user;
  if (change.user !== undefined) url.password = "secret";
  if (change.database !== undefined) url.pathname = `/${change.database}`;
  if (change.port !== undefined) url.port = `${change.port}`;
  return url.href;
}

export interface Served {
  readonly receiver: Receiver<PgClient>;
  /** Posts a signed body and resolves with the status of the answer. */
  post(body: string): Promise<number>;
}

/** A receiver on `store`, behind a server on loopback. */
export async function serve(
  store: InboxStore<PgClient> = postgresStore(newPool(), { schema: newSchema() }),
  options: Partial<ReceiverOptions<PgClient>> = {},
): Promise<Served> {
  const receiver = createReceiver<PgClient>({ secrets: TEST_SECRET, logger: silentLogger, store, ...options });
  const server = createServer(nodeWebhook(receiver));
  const port = await listenOnLoopback(server);
  onTestFinished(async () => {
    server.closeAllConnections();
    server.close();
    await receiver.stop();
  });
  return {
    receiver,
    async post(body) {
      const { headers, body: bytes } = signedRequest(body);
      const answer = await fetch(`http://127.0.0.1:${port}/`, { method: "POST", headers, body: new Uint8Array(bytes) });
      await answer.arrayBuffer();
      return answer.status;
    },
  };
}

/** Resolves once `check` is true: for what another connection or process does. */
export async function until(check: () => boolean | Promise<boolean>, timeoutMs = 10_000): Promise<void> {
  const end = performance.now() + timeoutMs;
  while (!(await check())) {
    if (performance.now() > end) throw new Error("It did not happen in time.");
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
}
