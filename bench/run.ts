/**
 * `npm run bench`: ratios of one run against peers on this machine. `--only NAME` runs the rows whose name contains NAME,
 * and can be given more than once; `--json` adds a last line for machines. Ends with 1 when a row misses its limit.
 */

import { parseArgs } from "node:util";
import { Terminal } from "../src/tools/cli/terminal.ts";
import { acceptGroup, sourceGroup } from "./accept.ts";
import { cliGroup } from "./cli.ts";
import { clientGroup } from "./client.ts";
import { effectsGroup } from "./effects.ts";
import { emulatorGroup } from "./emulator.ts";
import { footprintGroup } from "./footprint.ts";
import { handleGroup, handlePeerGroup } from "./handle.ts";
import { importGroup } from "./imports.ts";
import { inspectorGroup } from "./inspector.ts";
import { listenGroup } from "./listen.ts";
import { machine } from "./machine.ts";
import { memoryGroup } from "./memory.ts";
import { millionGroup } from "./million.ts";
import { peersGroup } from "./peers-http.ts";
import { postgresGroup } from "./postgres.ts";
import type { Group, LeftOut, Row } from "./rows.ts";
import { scaleAcceptGroup, scaleHandleGroups } from "./scale.ts";
import { telemetryGroup } from "./telemetry.ts";
import { verifyGroup } from "./verify.ts";

// Of every side and its processes: in development frameworks, and oncehook's log, do more.
process.env.NODE_ENV = "production";

const GROUPS: readonly Group[] = [
  verifyGroup,
  acceptGroup("express"),
  acceptGroup("fastify"),
  sourceGroup,
  peersGroup,
  handleGroup,
  handlePeerGroup,
  listenGroup,
  telemetryGroup,
  inspectorGroup,
  importGroup,
  emulatorGroup,
  clientGroup,
  cliGroup,
  millionGroup,
  memoryGroup,
  postgresGroup,
  effectsGroup,
  ...scaleHandleGroups,
  scaleAcceptGroup,
  footprintGroup,
];

const { values } = parseArgs({
  options: { json: { type: "boolean" }, only: { type: "string", multiple: true } },
});

function line({ name, ratio, unit, bound, target, ok, detail }: Row): string {
  const mark = ok ? "ok  " : "MISS";
  return `${mark} ${name.padEnd(72)} ${`${ratio}`.padStart(8)} ${unit.padEnd(10)} (${bound} ${target})  ${detail}`;
}

interface Found {
  readonly rows: readonly Row[];
  readonly leftOut: readonly LeftOut[];
  readonly failed: readonly LeftOut[];
}

/** A group that throws has failed with all its rows, and the next one is measured. */
async function measure(group: Group, wanted: ReadonlySet<string>): Promise<Found> {
  try {
    const results = await group.run(wanted);
    const leftOut = results.filter((result) => "reason" in result);
    return { rows: results.filter((result) => "ratio" in result), leftOut, failed: [] };
  } catch (error) {
    console.error(error);
    const reason = error instanceof Error ? error.message : String(error);
    const names = group.names.filter((name) => wanted.has(name));
    return { rows: [], leftOut: [], failed: names.map((name) => ({ name, reason })) };
  }
}

const seconds = (since: number) => `${((performance.now() - since) / 1000).toFixed(0)} s`;

const { only = [], json } = values;
const isAskedFor = (name: string) => only.length === 0 || only.some((part) => name.includes(part));
const wantedNames = GROUPS.flatMap(({ names }) => names).filter(isAskedFor);
if (wantedNames.length === 0) throw new Error(`No row's name contains "${only.join('" or "')}".`);
const wanted = new Set(wantedNames);
const measuredOn = machine();
console.log(JSON.stringify(measuredOn));
const rows: Row[] = [];
const leftOut: LeftOut[] = [];
const failed: LeftOut[] = [];
const startedAt = performance.now();
const terminal = new Terminal({});
for (const group of GROUPS) {
  const [first, ...others] = group.names.filter((name) => wanted.has(name));
  if (first === undefined) continue;
  const groupStartedAt = performance.now();
  const title = others.length === 0 ? first : `${first}, and ${others.length} more`;
  const found = await terminal.during(`Measuring ${title}:`, () => measure(group, wanted));
  for (const row of found.rows) console.log(line(row));
  for (const { name, reason } of found.leftOut) console.log(`left out ${name}: ${reason}`);
  for (const { name, reason } of found.failed) console.log(`FAILED ${name}: ${reason}`);
  console.log(`     ${seconds(groupStartedAt)}`);
  rows.push(...found.rows);
  leftOut.push(...found.leftOut);
  failed.push(...found.failed);
}
const missed = rows.filter(({ ok }) => !ok);
const counts = [
  `${rows.length} rows`,
  `${missed.length} missed`,
  `${leftOut.length} left out`,
  `${failed.length} failed`,
];
console.log(`${counts.join(", ")}, ${seconds(startedAt)}`);
if (json) console.log(JSON.stringify({ machine: measuredOn, only, rows, leftOut, failed }));
const isWhole = rows.length + leftOut.length === wanted.size && rows.length > 0;
process.exitCode = missed.length === 0 && isWhole ? 0 : 1;
