/** The Postgres of a programme that can do without one. */
import { type PostgresServer, startPostgres } from "../stores/postgres/server.ts";
import type { Terms } from "./programme.ts";

/** Null where none starts; then it is said what is left out. */
export function serverOrNot(what: string, say: Terms["say"]): Promise<PostgresServer | null> {
  return startPostgres().catch((error: unknown) => {
    say(`left out: ${what}, since none starts (${String(error).slice(0, 200)})`);
    return null;
  });
}
