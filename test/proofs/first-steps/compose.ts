/**
 * The parts of examples/docker-compose, without Docker: what compose.yaml starts is started here, with its commands and its
 * environment, and with addresses of this machine in place of the containers' names.
 */
import { existsSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join, resolve } from "node:path";
import { freePort } from "../../support/free-port.ts";
import { type Machine, ROOT, Running, type Tried } from "./newcomer.ts";

const PARSER = "yaml@2.9.1";
const INSTALL_MS = 120_000;

interface Service {
  readonly build?: { readonly additional_contexts: Readonly<Record<string, string>> };
  readonly command?: readonly string[];
  readonly environment: Readonly<Record<string, string>>;
}

interface Compose {
  readonly services: Readonly<Record<"app" | "emulator" | "postgres", Service>>;
}

export async function tryCompose(folder: string, { environment }: Machine, database: string): Promise<Tried> {
  const installing = new Running(`npm install --no-save ${PARSER}`, folder, environment);
  if ((await installing.ends(INSTALL_MS)) !== "0")
    return { checks: 0, problems: [`npm install ${PARSER}: ${installing.tail}`] };
  const { services } = parse(folder);
  const { app, emulator, postgres } = services;
  const command = commandOf(readFileSync(join(folder, "Dockerfile"), "utf8"));
  const problems = [...missingIn(folder, app), ...disagreementsOf(services)];

  const [appPort, emulatorPort] = [await freePort(), await freePort()];
  const password = postgres.environment.POSTGRES_PASSWORD;
  const here = (text: string) =>
    text
      .replace(`postgres://postgres:${password}@postgres:5432/postgres`, database)
      .replace("http://app:3000", `http://127.0.0.1:${appPort}`)
      .replace("http://emulator:4010", `http://127.0.0.1:${emulatorPort}`)
      .replace("--host=0.0.0.0", `--host=0.0.0.0 --port=${emulatorPort}`);
  const start = (words: readonly string[], variables: Readonly<Record<string, string>>) => {
    const placed = Object.fromEntries(Object.entries(variables).map(([name, value]) => [name, here(value)]));
    return new Running(words.map(here).join(" "), folder, { ...environment, ...placed, PORT: `${appPort}` });
  };
  const running = [start(emulator.command ?? [], emulator.environment), start(command, app.environment)] as const;
  try {
    for (const each of running) {
      const isUp = await each.shows((lines) => lines.some((line) => /^Listening|is emulated at/.test(line)));
      if (!isUp) return { checks: 0, problems: [...problems, `it does not start: ${each.tail}`] };
    }
    problems.push(...(await sendAndSee(`http://127.0.0.1:${appPort}`)));
  } finally {
    for (const each of running) problems.push(...(await each.end()));
  }
  if (problems.length > 0) problems.push(...running.map(({ tail }) => tail));
  return { checks: problems.length === 0 ? 5 : 0, problems };
}

function parse(folder: string): Compose {
  const { parse } = createRequire(join(folder, "package.json"))("yaml");
  // Anchors and merges are resolved as Docker does it.
  return parse(readFileSync(join(folder, "compose.yaml"), "utf8"), { merge: true });
}

function commandOf(dockerfile: string): string[] {
  const [, command = ""] = /^CMD (\[.*\])$/m.exec(dockerfile) ?? [];
  return JSON.parse(command);
}

/** Files that the Dockerfile copies, from the folder and from the other contexts. */
function missingIn(folder: string, { build }: Service): string[] {
  const text = readFileSync(join(folder, "Dockerfile"), "utf8");
  const copies = [...text.matchAll(/^COPY (?:--from=(\w+) )?(.+) \S+$/gm)];
  const contexts = build?.additional_contexts ?? {};
  const missing = copies.flatMap(([, from, names = ""]) => {
    const context = from === undefined ? folder : resolve(ROOT, "examples/docker-compose", contexts[from] ?? "nowhere");
    return names.split(" ").filter((name) => !existsSync(join(context, name)));
  });
  return copies.length === 0
    ? ["the Dockerfile copies nothing"]
    : missing.map((name) => `the Dockerfile copies ${name}`);
}

/** Both sides must have the same secrets. */
function disagreementsOf({ app, emulator }: Compose["services"]): string[] {
  const pairs = [
    ["WEBHOOK_SECRET", "ONCEHOOK_WEBHOOK_SECRET"],
    ["SERVICE_CLIENT_SECRET", "ONCEHOOK_CLIENT_SECRET"],
  ] as const;
  return pairs
    .filter(
      ([own, other]) => app.environment[own] === undefined || app.environment[own] !== emulator.environment[other],
    )
    .map(([own, other]) => `${own} of the application is not ${other} of the emulator`);
}

/** Sends a message as the README says, and waits until its state is `delivered`. */
async function sendAndSee(url: string): Promise<string[]> {
  const sent = await fetch(`${url}/sms`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ to: "+14155550101", text: "hello" }),
  });
  const { ids = [] } = (await sent.json()) as { ids?: readonly string[] };
  if (sent.status !== 202 || ids.length !== 1) return [`a send was answered with ${sent.status}`];
  const { status: healthy } = await fetch(`${url}/health`);
  if (healthy !== 200) return [`/health was answered with ${healthy}`];
  for (const until = performance.now() + 30_000; performance.now() < until; ) {
    const answer = await fetch(`${url}/sms/${ids[0]}`);
    const { status } = (await answer.json()) as { status?: string };
    if (status === "delivered") return [];
    await new Promise((resolve) => setTimeout(resolve, 200));
  }
  return ["no delivery came within 30 s"];
}
