/** What only a Postgres server can tell: its clock, and what it does with commits that are not ours. */
import { type Clock, systemClock } from "../../internal/clock.ts";
import { loadPool, type PgPool } from "../../stores/postgres/driver.ts";
import { clockFinding } from "./clocks.ts";
import { type Finding, ok, skipped, warning } from "./finding.ts";

const ASKED = `select (extract(epoch from clock_timestamp()) * 1000)::float8 as now,
  current_setting('synchronous_commit') as commit`;
const CONNECT_MS = 5_000;

/** @param address - of a server that an inbox was just opened at */
export async function postgresFindings(address: string, clock: Clock = systemClock): Promise<Finding[]> {
  const Pool = await loadPool();
  const settings = {
    max: 1,
    connectionTimeoutMillis: CONNECT_MS,
    keepAlive: false,
    application_name: "oncehook doctor",
  };
  const pool = new Pool({ connectionString: address, ...settings });
  pool.on("error", () => {});
  try {
    const asked = clock.now();
    const { now, commit } = await ask(pool);
    const answered = clock.now();
    const reading = { aheadMs: (asked + answered) / 2 - Number(now), unsureMs: (answered - asked) / 2 };
    return [clockFinding("the database's", reading), commitFinding(String(commit))];
  } catch {
    // The inbox is open, so the server is there.
    return [skipped("clock", "The database gave no second connection to ask for its clock.", "one that is free")];
  } finally {
    await pool.end();
  }
}

function ask(pool: PgPool): Promise<Record<string, unknown>> {
  return new Promise((resolve, reject) => {
    pool.connect((error, client) => {
      if (client === undefined) return reject(error ?? new Error("The pool gave no connection."));
      client
        .query(ASKED)
        .then(({ rows }) => resolve(rows[0] ?? {}), reject)
        .finally(() => client.release());
    });
  });
}

/** Ours say for themselves that they wait for the disk; the application's own tables depend on it. */
function commitFinding(commit: string): Finding {
  if (commit !== "off") return ok("commits", `synchronous_commit is ${commit}.`);
  const what = "synchronous_commit is off: the inbox sets it for itself, but what the application writes may be lost.";
  return warning("commits_asynchronous", what, "alter database … set synchronous_commit = on");
}
