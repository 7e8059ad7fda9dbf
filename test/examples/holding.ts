/** Keeps the examples on Postgres from writing their rows, in the middle of the transactions that complete events. */
import { Client } from "pg";

/** Returns what lets them go on. */
export async function holdRows(databaseUrl: string, table: string): Promise<() => Promise<void>> {
  const client = new Client({ connectionString: databaseUrl });
  client.on("error", () => {}); // Of a test that failed: its database goes while this is open.
  await client.connect();
  await client.query(`begin; lock table ${table} in exclusive mode`);
  return () => client.end();
}
