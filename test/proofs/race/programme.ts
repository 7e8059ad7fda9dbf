/** `npm run prove -- race`: the same event 64 times at once, to one process, to four on a SQLite file and to three on Postgres. */
import { mkdtempSync, rmSync } from "node:fs";
import { join } from "node:path";
import pg from "pg";
import { type PostgresServer, startPostgres } from "../../postgres/server.ts";
import { lateLine } from "../bills.ts";
import { breachCounts, breachLines } from "../history.ts";
import { effectTable } from "../postgres-inbox.ts";
import type { Programme, Proof, Terms } from "../programme.ts";
import { MEMORY_DISK } from "../../support/memory-disk.ts";
import { COPIES, type Outcome, race } from "./race.ts";
import type { RacePlace } from "./racers.ts";

const SHORT = 100;
const FULL = 1_000;
const SMALL = 20;
const NAIVE = 20;
const SCHEMA = "race";

export const races: Programme = {
  name: "race",
  what: "an event that comes 64 times at once, to several processes, is one row and one effect, and every answer a 2xx",
  hasSmallForm: true,
  async run({ full, small, say }: Terms): Promise<Proof> {
    const fewer = small ? SMALL : SHORT;
    const events = full ? FULL : fewer;
    const folder = mkdtempSync(join(MEMORY_DISK, "oncehook-race-"));
    const onFile = (name: string) => ({ kind: "sqlite", path: join(folder, `${name}.db`) }) as const;
    const problems: string[] = [];
    let count = 0;
    const tell = async (where: string, racing: Promise<Outcome>) => {
      try {
        const outcome = await racing;
        count += outcome.accepted + outcome.duplicates;
        say(`${where.padEnd(22)} ${lineOf(outcome)}`);
        problems.push(...problemsOf(outcome).map((problem) => `${where}: ${problem}`));
      } catch (error) {
        problems.push(brokenOff(where, error));
      }
    };
    try {
      await tell("one process", race({ place: onFile("one"), processes: 1, events, naive: false }));
      await tell("four on a SQLite file", race({ place: onFile("four"), processes: 4, events, naive: false }));
      if (!small) {
        const server = await serverOrNot(say);
        if (server !== null) await tell("three on Postgres", onPostgres(server, events));
        const control = unseen(onFile("naive"), say);
        problems.push(...(await control.catch((error: unknown) => [brokenOff("naive", error)])));
      }
    } finally {
      rmSync(folder, { recursive: true, force: true });
    }
    return { count, unit: "deliveries", problems };
  },
};

/** A race that cannot be run to its end is a problem like others: what was found before it is told too. */
function brokenOff(where: string, error: unknown): string {
  return `${where}: it broke off: ${error instanceof Error ? error.message : String(error)}`;
}

/** The control: a receiver that looks, and then inserts. */
async function unseen(place: RacePlace, say: Terms["say"]): Promise<string[]> {
  const naive = await race({ place, processes: 4, events: NAIVE, naive: true });
  say(`naive                  ${lineOf(naive)}`);
  const isSeen = naive.breaches.some(({ kind }) => kind === "double");
  return isSeen ? [] : ["check-then-insert was not seen to double"];
}

async function serverOrNot(say: Terms["say"]): Promise<PostgresServer | null> {
  return startPostgres().catch((error: unknown) => {
    say(`left out: three processes on Postgres, since none starts (${String(error).slice(0, 200)})`);
    return null;
  });
}

async function onPostgres(server: PostgresServer, events: number): Promise<Outcome> {
  const client = new pg.Client({ connectionString: server.url });
  try {
    await client.connect();
    await client.query(effectTable(SCHEMA));
    await client.end();
    const place = { kind: "postgres", url: server.url, schema: SCHEMA } as const;
    return await race({ place, processes: 3, events, naive: false });
  } finally {
    await server.stop();
  }
}

function problemsOf({ breaches, problems, events, accepted, duplicates }: Outcome): string[] {
  const found = [...breachLines(breaches), ...problems.slice(0, 20)];
  if (accepted !== events) found.push(`${accepted} deliveries of ${events} events were told to be the first`);
  if (duplicates !== events * (COPIES - 1)) found.push(`${duplicates} deliveries were told to be repeats`);
  return found;
}

function lineOf({ breaches, problems, late, accepted, duplicates }: Outcome): string {
  return `${accepted} accepted, ${lateLine(late)}, ${duplicates} repeats, ${problems.length} answers other than 2xx: ${breachCounts(breaches)}`;
}
