/** Whether the server keeps what it acknowledges, and takes what the inbox writes. */
import { SetupError } from "../../errors.ts";
import { type PgClient, types } from "./driver.ts";
import { ANSWER_MS } from "./session.ts";

const OLDEST_VERSION = 130_000;

const SERVER = `select current_setting('fsync') as fsync, current_setting('full_page_writes') as pages,
  pg_is_in_recovery() as standby, current_setting('server_version_num')::int as version,
  current_setting('server_encoding') as encoding, pg_backend_pid() as pid`;

interface Server {
  readonly fsync: string;
  readonly pages: string;
  readonly standby: boolean;
  readonly version: number;
  readonly encoding: string;
  readonly pid: number;
}

/**
 * @returns the number of the server's process, which a pooler's client is not told as its own
 * @throws SetupError `not_durable`, `incompatible_peer` for an old server, `invalid_option` for a database that is not UTF-8
 */
export async function checkServer(client: PgClient): Promise<number> {
  const { rows } = await client.query({ text: SERVER, types, query_timeout: ANSWER_MS });
  const { fsync, pages, standby, version, encoding, pid } = rows[0] as unknown as Server;
  if (version < OLDEST_VERSION) {
    const message = `The inbox needs Postgres 13 or later; this server is ${Math.floor(version / 10_000)}.`;
    throw new SetupError("incompatible_peer", message, { fields: { version } });
  }
  if (encoding !== "UTF8") {
    const message = `The inbox needs a database of the encoding UTF8, and this one is ${encoding}: create database … encoding 'UTF8' template template0.`;
    throw new SetupError("invalid_option", message, { fields: { option: "database", encoding } });
  }
  if (standby) {
    throw new SetupError(
      "not_durable",
      "This Postgres server is a standby, which can not be written to: connect to the primary.",
    );
  }
  if (fsync === "on" && pages === "on") return pid;
  const message = `This Postgres server may lose what it acknowledged: fsync is ${fsync} and full_page_writes is ${pages}; both must be on. (synchronous_commit is set per transaction.)`;
  throw new SetupError("not_durable", message, { fields: { fsync, fullPageWrites: pages } });
}
