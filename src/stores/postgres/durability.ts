/** Whether what the server acknowledges survives its crash. */
import { SetupError } from "../../errors.ts";
import type { PgClient } from "./driver.ts";

/** @throws SetupError `not_durable` */
export async function checkDurable(client: PgClient): Promise<void> {
  const { rows } = await client.query(
    "select current_setting('fsync') as fsync, current_setting('full_page_writes') as pages, pg_is_in_recovery() as standby",
  );
  const { fsync, pages, standby } = rows[0] ?? {};
  if (standby === true) {
    throw new SetupError(
      "not_durable",
      "This Postgres server is a standby, which can not be written to: connect to the primary.",
    );
  }
  if (fsync === "on" && pages === "on") return;
  const message = `This Postgres server may lose what it acknowledged: fsync is ${fsync} and full_page_writes is ${pages}; both must be on. (synchronous_commit is set per transaction.)`;
  throw new SetupError("not_durable", message, { fields: { fsync: String(fsync), fullPageWrites: String(pages) } });
}
