/** What only a Postgres server can tell: its clock, what it does with commits that are not ours, and whether a pooler stands before it. */
import { type Clock, systemClock } from "../../internal/clock.ts";
import { type Kept, lookForPooler } from "../../stores/postgres/open.ts";
import { loadPool, Statements, withSession } from "../../stores/postgres/session.ts";
import { clockFinding } from "./clocks.ts";
import { type Finding, ok, skipped, warning } from "./finding.ts";

const ASKED = `select (extract(epoch from clock_timestamp()) * 1000)::float8 as now,
  current_setting('synchronous_commit') as commit, pg_backend_pid() as pid`;

interface Asked {
  readonly now: string;
  readonly commit: string;
  readonly pid: number;
}

const CONNECT_MS = 5_000;

/** @param address - of a server that an inbox was just opened at */
export async function postgresFindings(address: string, clock: Clock = systemClock): Promise<Finding[]> {
  const Pool = await loadPool();
  const settings = {
    max: 2,
    connectionTimeoutMillis: CONNECT_MS,
    keepAlive: false,
    application_name: "oncehook doctor",
  };
  const pool = new Pool({ connectionString: address, ...settings });
  pool.on("error", () => {});
  const access = { pool, clock, schema: "", statements: new Statements("", false) };
  try {
    return await withSession(access, async (session) => {
      const asked = clock.now();
      const [row] = await session.rows<Asked>(null, ASKED);
      const answered = clock.now();
      if (row === undefined) throw new Error("The server answered nothing.");
      const reading = { aheadMs: (asked + answered) / 2 - Number(row.now), unsureMs: (answered - asked) / 2 };
      const kept = await lookForPooler(access, session, row.pid);
      return [clockFinding("the database's", reading), commitFinding(row.commit), ...poolerFindings(kept)];
    });
  } catch {
    // The inbox is open, so the server is there.
    return [
      skipped(
        "clock",
        "The database gave no second connection to ask for its clock.",
        "Allow its role one connection more.",
      ),
    ];
  } finally {
    await pool.end();
  }
}

/** Ours say for themselves that they wait for the disk; the application's own tables depend on it. */
function commitFinding(commit: string): Finding {
  if (commit !== "off") return ok("commits", `synchronous_commit is ${commit}.`);
  const what = "synchronous_commit is off: the inbox sets it for itself, but what the application writes may be lost.";
  return warning("commits_asynchronous", what, "alter database … set synchronous_commit = on");
}

function poolerFindings({ statements, listening }: Kept): Finding[] {
  if (statements && listening) return [];
  const lost = statements ? "LISTEN" : "prepared statements and LISTEN";
  const options = statements ? "listen: false" : "prepare: false, listen: false";
  const what = `A transaction pooler stands before the server and does not keep ${lost}: receivers do without.`;
  const fix = `Pass { ${options} } to postgresStore() if it does not get that already, or connect to the server directly.`;
  return [warning("transaction_pooler", what, fix)];
}
