/** Finds out whether a pooler gives each transaction another connection of the server, and what of a connection's state it keeps. */
import { CONNECTIONS, type PgClient, types } from "./driver.ts";
import { isStatementLost } from "./failures.ts";
import { type Access, ANSWER_MS, type Session, withSession } from "./session.ts";

/** What of a connection's state outlasts a transaction. */
export interface Kept {
  /** Statements that were prepared by name. */
  readonly statements: boolean;
  /** `LISTEN`. */
  readonly listening: boolean;
}

const ALL: Kept = { statements: true, listening: true };

const PID = "select pg_catalog.pg_backend_pid() as pid";
const PROBE = { name: "oncehook_probe", text: PID, types, query_timeout: ANSWER_MS };

/**
 * A client of a pooler gets another process number than the server's. Two clients that reach the same process of the server share it by
 * the transaction; and where both prepare a statement of one name there, the second fails unless the pooler keeps them apart. Under load
 * they may reach different ones, which shows nothing: then the first statement that is lost shows it.
 *
 * @param pid - the process of the server that answered `session`
 */
export async function lookForPooler(access: Access, session: Session, pid: number): Promise<Kept> {
  const { processID } = session.client;
  const connections = access.pool.options?.max ?? CONNECTIONS;
  if (typeof processID !== "number" || processID === pid || connections < 2) return ALL;
  try {
    const first = await probe(session.client);
    const second = await withSession(access, ({ client }) => probe(client));
    return { statements: true, listening: first !== second };
  } catch (error) {
    // Any other failure shows nothing either: no second connection may be free.
    return isStatementLost(error) ? { statements: false, listening: false } : ALL;
  }
}

async function probe(client: PgClient): Promise<unknown> {
  const { rows } = await client.query<{ readonly pid: number }>(PROBE);
  return rows[0]?.pid;
}
