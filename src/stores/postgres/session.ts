/** Connections of the pool, and transactions on them. */
import type { Clock } from "../../internal/clock.ts";
import { sleep } from "../../internal/clock.ts";
import { type PgClient, type PgPool, types } from "./driver.ts";
import { isContention } from "./failures.ts";

/** Statements of one connection; names make them prepared, and null is for those of many shapes. */
export interface Session {
  readonly client: PgClient;
  /** Rows of `text`, a statement of this folder, in which `{}` stands for the schema. */
  rows<Row>(name: string | null, text: string, values?: readonly unknown[]): Promise<readonly Row[]>;
}

/**
 * Whatever the server's default, a commit here is on disk when it is told. And plans are kept from a time when the tables were
 * small: a scan that was cheap then would be repeated when they have grown.
 */
const BEGIN = "begin; set local synchronous_commit = on; set local enable_seqscan = off";
/** Around statements that are not ours. */
export const USERS_PLANS = "set local enable_seqscan to default";
export const OUR_PLANS = "set local enable_seqscan = off";

const FIRST_PAUSE_MS = 2;
const MOST_TRIES = 8;

export interface Access {
  readonly pool: PgPool;
  readonly clock: Clock;
  /** The schema, quoted. */
  readonly schema: string;
  /** Statements are prepared by name; not behind a transaction pooler. */
  readonly prepares: boolean;
  /** Statements with the schema in them, by name. */
  readonly texts: Map<string, string>;
}

/** Runs `work` with a connection. One that broke is not given back. */
export async function withSession<T>(access: Access, work: (session: Session) => Promise<T>): Promise<T> {
  const client = await access.pool.connect();
  let broken: Error | undefined;
  try {
    return await work(sessionOf(access, client));
  } catch (error) {
    broken = error instanceof Error ? error : new Error("unknown");
    throw error;
  } finally {
    // After a failed statement the connection's own state is unknown to us; opening another costs little beside a failure.
    client.release(broken);
  }
}

/** Runs `work` in a transaction: all of it is durable when this resolves, or nothing happened. Contention is tried again. */
export async function inTransaction<T>(access: Access, work: (session: Session) => Promise<T>): Promise<T> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await withSession(access, (session) => transact(session, work));
    } catch (error) {
      if (!isContention(error) || attempt >= MOST_TRIES) throw error;
    }
    await sleep(access.clock, FIRST_PAUSE_MS * attempt);
  }
}

async function transact<T>(session: Session, work: (session: Session) => Promise<T>): Promise<T> {
  const { client } = session;
  await client.query(BEGIN);
  try {
    const result = await work(session);
    await client.query("commit");
    return result;
  } catch (error) {
    await client.query("rollback").catch(() => {});
    throw error;
  }
}

function sessionOf(access: Access, client: PgClient): Session {
  return {
    client,
    async rows<Row>(name: string | null, template: string, values: readonly unknown[] = []) {
      const text = textOf(access, name, template);
      // Another store may share the pool, with another schema.
      const query =
        access.prepares && name !== null
          ? { name: `${name} ${access.schema}`, text, values, types }
          : { text, values, types };
      const { rows } = await client.query(query);
      return rows as readonly Row[];
    },
  };
}

function textOf({ texts, schema }: Access, name: string | null, template: string): string {
  if (name === null) return template.replaceAll("{}", schema);
  let text = texts.get(name);
  if (text === undefined) {
    text = template.replaceAll("{}", schema);
    texts.set(name, text);
  }
  return text;
}
