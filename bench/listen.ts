/** What `oncehook listen` accepts beside the Fastify example: both as users start them, both printing what they handle. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { closeSync, openSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { median } from "../test/support/statistics.ts";
import { startChild } from "./child.ts";
import { SECRET } from "./deliveries.ts";
import { inDirectory } from "./http.ts";
import type { LoadResult } from "./load.ts";
import { type Group, grouped, type Limit, ratioOf, row } from "./rows.ts";

const LIMIT: Limit = { name: "oncehook listen / the Fastify example", target: 0.9, bound: "at least" };
const ROUNDS = 6;
const REQUESTS = 20_000;
const LOOK_EVERY_MS = 20;
const ROOT = join(import.meta.dirname, "..", "..");

interface Started {
  readonly port: number;
  readonly perSecond: number[];
  stop(): Promise<unknown>;
}

export const listenGroup: Group = {
  names: [LIMIT.name],
  run: () =>
    inDirectory(async (directory) => {
      const load = startChild("load");
      const command = ["dist/cli.js", "listen", "--port=0", `--store=${join(directory, "listen.db")}`, "--json"];
      const example = [".build/examples/servers/fastify/server.js"];
      const environment = { PORT: "0", INBOX_PATH: join(directory, "example.db"), WEBHOOK_SECRET: SECRET };
      const servers = await Promise.all([
        start(command, { ONCEHOOK_WEBHOOK_SECRET: SECRET }, join(directory, "listen.log")),
        start(example, environment, join(directory, "example.log")),
      ]);
      try {
        for (let round = 0; round <= ROUNDS; round++) {
          await load.ask({ make: REQUESTS, lifecycles: false });
          // In turns: whoever comes first meets a machine that is still busy with what went before.
          for (const server of round % 2 === 0 ? servers : servers.toReversed()) {
            const { perSecond } = await load.ask<LoadResult>({ sendTo: server.port });
            if (round > 0) server.perSecond.push(perSecond);
          }
        }
      } finally {
        await Promise.all([load, ...servers].map((each) => each.stop()));
      }
      const [ours = [], theirs = []] = servers.map(({ perSecond }) => perSecond);
      return [row(LIMIT, ratioOf(ours, theirs), `${grouped(median(ours))} / ${grouped(median(theirs))} requests/s`)];
    }),
};

/** Its lines go to a file, where nobody's reading costs anything. */
async function start(args: readonly string[], environment: NodeJS.ProcessEnv, log: string): Promise<Started> {
  const output = openSync(log, "w");
  const { PATH } = process.env;
  const child = spawn(process.execPath, args, {
    cwd: ROOT,
    env: { PATH, NODE_ENV: "production", ...environment },
    stdio: ["ignore", output, "inherit"],
  });
  closeSync(output);
  const exited = once(child, "exit");
  return {
    port: await portIn(log, child),
    perSecond: [],
    stop: () => {
      child.kill("SIGTERM");
      return exited;
    },
  };
}

/** From the first line, as soon as it is there. */
async function portIn(log: string, child: ChildProcess): Promise<number> {
  for (;;) {
    const [line = "", rest] = readFileSync(log, "utf8").split("\n");
    if (rest !== undefined) return Number(new URL(JSON.parse(line).listening).port);
    if (child.exitCode !== null) throw new Error(`${child.spawnargs.join(" ")} ended with ${child.exitCode}.`);
    await new Promise((resolve) => setTimeout(resolve, LOOK_EVERY_MS));
  }
}
