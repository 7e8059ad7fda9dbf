/** A pool of pg as it looks behind a pooler that keeps a connection for a transaction only. */
import type { PgClient, PgPool } from "../../src/stores/postgres.ts";
import { newPool } from "./place.ts";

/**
 * A transaction pooler: each transaction runs on another connection of the server, and no session state lasts. Statements have
 * no names, or it fails.
 */
export function transactionPooler(): PgPool & { readonly seen: Set<number> } {
  const pool = newPool({ max: 3 });
  const seen = new Set<number>();
  const facade = (): PgClient => {
    let held: { readonly client: PgClient; readonly pid: number } | null = null;
    const take = async () => {
      // pg's own types say more than is needed here.
      const client = (await pool.connect()) as unknown as PgClient & { processID: number };
      return { client, pid: client.processID };
    };
    const query = async (asked: { readonly text: string; readonly name?: string } | string, values?: unknown[]) => {
      const text = typeof asked === "string" ? asked : asked.text;
      if (typeof asked !== "string" && asked.name !== undefined) throw new Error("A named statement.");
      held ??= await take();
      const { client, pid } = held;
      seen.add(pid);
      try {
        return await client.query(asked as never, values as never);
      } finally {
        const { rows } = await client
          .query("select pg_current_xact_id_if_assigned() is not null or now() <> statement_timestamp() as is_open")
          .catch(() => ({ rows: [{ is_open: true }] }));
        const isOver = /^(commit|rollback)/i.test(text) || (!/^begin/i.test(text) && rows[0]?.is_open !== true);
        if (isOver) {
          await client.query("discard all");
          client.release(true);
          held = null;
        }
      }
    };
    return { query, on: () => {}, removeListener: () => {}, release: () => {} } as unknown as PgClient;
  };
  return { seen, connect: (callback) => callback(undefined, facade()), end: () => pool.end(), on: () => {} };
}
