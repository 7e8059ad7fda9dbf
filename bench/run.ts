/**
 * `npm run bench`: ratios of one run against peers on this machine. `--only NAME` runs the rows whose name contains NAME;
 * `--json` adds a last line for machines. Ends with 1 when a row misses its limit.
 */

import { createRequire } from "node:module";
import { cpus, release, totalmem } from "node:os";
import { parseArgs } from "node:util";
import { acceptGroup, handleGroup } from "./accept.ts";
import { cliGroup } from "./cli.ts";
import { clientGroup } from "./client.ts";
import { emulatorGroup } from "./emulator.ts";
import { footprintGroup } from "./footprint.ts";
import { importGroup } from "./imports.ts";
import { inspectorGroup } from "./inspector.ts";
import { listenGroup } from "./listen.ts";
import { millionGroup } from "./million.ts";
import { postgresGroup } from "./postgres.ts";
import { postgresHttpGroup } from "./postgres-http.ts";
import type { Group, Row } from "./rows.ts";
import { scaleAcceptGroup, scaleHandleGroups } from "./scale.ts";
import { telemetryGroup } from "./telemetry.ts";
import { verifyGroup } from "./verify.ts";

const GROUPS: readonly Group[] = [
  verifyGroup,
  acceptGroup("express"),
  acceptGroup("fastify"),
  handleGroup,
  listenGroup,
  telemetryGroup,
  inspectorGroup,
  importGroup,
  emulatorGroup,
  clientGroup,
  cliGroup,
  millionGroup,
  postgresGroup,
  postgresHttpGroup,
  ...scaleHandleGroups,
  scaleAcceptGroup,
  footprintGroup,
];

const { values } = parseArgs({ options: { json: { type: "boolean" }, only: { type: "string", default: "" } } });

function machine(): Readonly<Record<string, string | number>> {
  const require = createRequire(import.meta.url);
  const versions = ["express", "fastify", "better-sqlite3", "pg"].map((name) => [
    name,
    require(`${name}/package.json`).version,
  ]);
  return {
    cpu: cpus()[0]?.model ?? "unknown",
    cores: cpus().length,
    memoryGiB: Math.round(totalmem() / 2 ** 30),
    system: `${process.platform} ${release()}`,
    node: process.version,
    ...Object.fromEntries(versions),
  };
}

function line({ name, ratio, unit, bound, target, ok, detail }: Row): string {
  const mark = ok ? "ok  " : "MISS";
  return `${mark} ${name.padEnd(56)} ${`${ratio}`.padStart(8)} ${unit.padEnd(8)} (${bound} ${target})  ${detail}`;
}

const wantedNames = GROUPS.flatMap(({ names }) => names).filter((name) => name.includes(values.only));
if (wantedNames.length === 0) throw new Error(`No row's name contains "${values.only}".`);
const wanted = new Set(wantedNames);
console.log(JSON.stringify(machine()));
const rows: Row[] = [];
for (const group of GROUPS) {
  if (!group.names.some((name) => wanted.has(name))) continue;
  for (const row of await group.run(wanted)) {
    rows.push(row);
    console.log(line(row));
  }
}
const missed = rows.filter(({ ok }) => !ok);
console.log(`${rows.length} rows, ${missed.length} missed`);
if (values.json) console.log(JSON.stringify({ machine: machine(), rows }));
process.exitCode = missed.length === 0 && rows.length === wanted.size ? 0 : 1;
