/** `npm run prove -- examples`: each example that stands alone, installed with the packed package and started by its one command. */
import { existsSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import pg from "pg";
import { lifecycle, signedRequest, TEST_SECRETS } from "../../../src/tools/testing/index.ts";
import { type PostgresServer, startPostgres } from "../../stores/postgres/server.ts";
import { freePort } from "../../support/free-port.ts";
import type { Programme, Proof, Terms } from "../programme.ts";
import { tryCompose } from "./compose.ts";
import { copyExample, isChosen, type Machine, prepareMachine, ROOT, Running, SECRET, type Tried } from "./newcomer.ts";

const INSTALL_MS = 600_000;
const START_MS = 300_000;
const COMPILER = createRequire(import.meta.url)
  .resolve("typescript/package.json")
  .replace("package.json", "bin/tsc");
/** `npm run test:next` installs and drives it. */
const TRIED_ELSEWHERE = ["nextjs-postgres"];

export const examples: Programme = {
  name: "examples",
  what: "each example that stands alone is installed with the packed package, compiles, and handles signed events",
  async run({ say }: Terms): Promise<Proof> {
    const machine = await prepareMachine();
    const postgres = await startPostgres().catch((error: Error) => error);
    const problems: string[] = [];
    let count = 0;
    try {
      for (const name of standingAlone().filter((each) => !TRIED_ELSEWHERE.includes(each) && isChosen(each))) {
        const needsPostgres = readFileSync(join(ROOT, "examples", name, "package.json"), "utf8").includes('"pg"');
        if (needsPostgres && postgres instanceof Error) {
          say(`${name.padEnd(18)} left out: ${postgres.message.split("\n")[0]}`);
          continue;
        }
        const database = needsPostgres && !(postgres instanceof Error) ? await newDatabase(postgres, name) : null;
        const startedAt = performance.now();
        const tried = await tryExample(name, machine, database);
        const seconds = ((performance.now() - startedAt) / 1000).toFixed(0);
        say(`${name.padEnd(18)} ${tried.checks} checks in ${seconds} s`);
        count += tried.checks;
        problems.push(...tried.problems.map((problem) => `${name}: ${problem}`));
      }
      return { count, unit: "checks", problems };
    } finally {
      if (!(postgres instanceof Error)) await postgres.stop();
      machine.dispose();
    }
  },
};

/** The folders of `examples` that have a package.json of their own. */
function standingAlone(): string[] {
  return readdirSync(join(ROOT, "examples")).filter((name) => existsSync(join(ROOT, "examples", name, "package.json")));
}

/** Of the example's own: the inbox of another one would know its events. */
async function newDatabase({ url }: PostgresServer, example: string): Promise<string> {
  const name = example.replaceAll("-", "_");
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    await client.query(`create database ${name}`);
  } finally {
    await client.end();
  }
  return url.replace(/\/postgres$/, `/${name}`);
}

async function tryExample(name: string, machine: Machine, database: string | null): Promise<Tried> {
  const folder = copyExample(name, machine);
  const installing = new Running("npm install", folder, machine.environment);
  if ((await installing.ends(INSTALL_MS)) !== "0") return failed(`npm install: ${installing.tail}`);
  if (name === "docker-compose") return tryCompose(folder, machine, database ?? "");

  const port = await freePort();
  const environment = {
    ...machine.environment,
    PORT: `${port}`,
    WEBHOOK_SECRET: SECRET,
    CRON_SECRET: SECRET,
    STRIPE_WEBHOOK_SECRET: TEST_SECRETS.stripe,
    ...(database !== null && { DATABASE_URL: database }),
  };
  const started = new Running("npm start", folder, environment);
  const problems: string[] = [];
  try {
    if (!(await started.shows(isListening(port), START_MS))) return failed(`npm start: ${started.tail}`);
    problems.push(...(await deliverTo(`http://127.0.0.1:${port}/webhooks`, started)));
    if (name === "express-stripe") problems.push(...(await bill(`http://127.0.0.1:${port}/webhooks/stripe`, started)));
  } finally {
    problems.push(...(await started.end()));
  }
  if (problems.length > 0) return failed(...problems, started.tail);
  const types = await compile(folder);
  return { checks: types.length === 0 ? 5 : 4, problems: types };
}

const failed = (...problems: string[]): Tried => ({ checks: 0, problems });

/** Next.js prints its address before it is ready. */
function isListening(port: number): (lines: readonly string[]) => boolean {
  return (lines) => {
    const isNext = lines.some((line) => line.includes("Local:"));
    return lines.some((line) =>
      isNext ? /Ready in/.test(line) : line.startsWith("Listening") && line.includes(`${port}`),
    );
  };
}

/** Three events of a message, the last one first, and a forged one; returns what is wrong with the answers and with what is handled. */
async function deliverTo(url: string, application: Running): Promise<string[]> {
  const [queued, sent, delivery] = lifecycle({ messageId: "msg_example", occurredAt: Date.now() });
  const forged = await statusOf(url, signedRequest(queued ?? {}, { secret: `${SECRET}-of-nobody` }));
  const problems = forged === 401 ? [] : [`a forged event was answered with ${forged}`];
  for (const event of [delivery, queued, sent]) {
    const status = await statusOf(url, signedRequest(event ?? {}, { secret: SECRET }));
    if (status !== 200) problems.push(`a signed event was answered with ${status}`);
  }
  const handled = (lines: readonly string[]) =>
    lines.filter((line) => line.includes("msg_example")).flatMap((line) => /message\.\w+/.exec(line) ?? []);
  const inOrder = "message.queued message.sent message.delivery";
  const isInOrder = await application.shows((lines) => handled(lines).join(" ") === inOrder);
  if (!isInOrder) problems.push(`handled were "${handled(application.lines).join(" ")}" in place of "${inOrder}"`);
  return problems;
}

/** An event of Stripe. */
async function bill(url: string, application: Running): Promise<string[]> {
  const created = Math.floor(Date.now() / 1000);
  const event = { id: "evt_1", object: "event", type: "invoice.paid", created };
  const invoice = { id: "in_1", object: "invoice", amount_paid: 100 };
  const request = signedRequest({ ...event, data: { object: invoice } }, { source: "stripe" });
  const status = await statusOf(url, request);
  if (status !== 200) return [`Stripe's event was answered with ${status}`];
  const isHandled = await application.shows((lines) => lines.includes("handled invoice.paid evt_1"));
  return isHandled ? [] : ["Stripe's event was not handled"];
}

async function statusOf(url: string, request: RequestInit): Promise<number> {
  const response = await fetch(url, request);
  await response.arrayBuffer();
  return response.status;
}

/** With a user's strict settings, against the installed package. `next build` has compiled the Next.js example. */
async function compile(folder: string): Promise<string[]> {
  if (existsSync(join(folder, "next.config.ts"))) return [];
  const compilerOptions = {
    target: "ES2022",
    module: "NodeNext",
    types: ["node"],
    strict: true,
    noUncheckedIndexedAccess: true,
    skipLibCheck: true,
    allowImportingTsExtensions: true,
    experimentalDecorators: true,
    noEmit: true,
  };
  writeFileSync(join(folder, "tsconfig.check.json"), JSON.stringify({ compilerOptions, include: ["*.ts"] }));
  const compiling = new Running(`"${process.execPath}" "${COMPILER}" -p tsconfig.check.json`, folder, {});
  return (await compiling.ends(INSTALL_MS)) === "0" ? [] : [`it does not compile: ${compiling.tail}`];
}
