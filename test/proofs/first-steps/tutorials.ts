/** `npm run prove -- tutorials`: follows each tutorial word for word, with the packed package, to its first handled event and its end. */
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { isPrinted, type Step, stepsOf } from "../../../scripts/docs/tutorial.ts";
import { type PostgresServer, startPostgres } from "../../stores/postgres/server.ts";
import { freePort } from "../../support/free-port.ts";
import type { Programme, Proof, Terms } from "../programme.ts";
import { isChosen, type Machine, prepareMachine, ROOT, Running } from "./newcomer.ts";

const FOLDER = "docs/tutorials";
const COMMAND_MS = 300_000;
/** To the first handled event, on a machine that compiles nothing. */
const PATIENCE_S = 180;

/** What tutorials name, and this machine has at another place. */
const PORT_OF_TUTORIALS = "127.0.0.1:3000";
const DATABASE_OF_TUTORIALS = "postgres://postgres:postgres@127.0.0.1:5432/postgres";

export const tutorials: Programme = {
  name: "tutorials",
  what: "each tutorial, followed word for word, leads to a handled event within three minutes",
  needsQuiet: true,
  async run({ say }: Terms): Promise<Proof> {
    const machine = await prepareMachine();
    const problems: string[] = [];
    let count = 0;
    try {
      const files = readdirSync(join(ROOT, FOLDER)).filter((file) => file.endsWith(".md") && isChosen(file));
      for (const file of files) {
        const text = readFileSync(join(ROOT, FOLDER, file), "utf8");
        const postgres = text.includes(DATABASE_OF_TUTORIALS)
          ? await startPostgres().catch((error: Error) => error)
          : null;
        if (postgres instanceof Error) {
          say(`${file.padEnd(20)} left out: ${postgres.message.split("\n")[0]}`);
          continue;
        }
        const followed = await follow(`${FOLDER}/${file}`, machine, postgres);
        say(lineOf(followed));
        count += followed.blocks;
        problems.push(...followed.problems);
      }
      return { count, unit: "blocks", problems };
    } finally {
      machine.dispose();
    }
  },
};

interface Followed {
  readonly page: string;
  /** That were written, run or seen. */
  readonly blocks: number;
  readonly leftOut: readonly string[];
  /** To the first handled event; null if there was none. */
  readonly seconds: number | null;
  readonly problems: readonly string[];
}

async function follow(page: string, machine: Machine, postgres: PostgresServer | null): Promise<Followed> {
  const steps = stepsOf(page, readFileSync(join(ROOT, page), "utf8"));
  const reader = await Reader.begin(machine, page.replaceAll("/", "-"), postgres);
  const leftOut: string[] = [];
  const problems: string[] = [];
  let blocks = 0;
  try {
    for (const step of steps) {
      if (step.kind === "not followed") leftOut.push(`${step.place} ${step.reason}`);
      else blocks += 1;
      const problem = await reader.take(step);
      if (problem === null) continue;
      problems.push(`${step.place}: ${problem}`);
      break; // What follows needs it.
    }
    problems.push(...(await reader.end()).map((problem) => `${page}: ${problem}`));
    const { seconds } = reader;
    if (seconds === null) problems.push(`${page}: no event was handled`);
    else if (seconds > PATIENCE_S) problems.push(`${page}: ${seconds.toFixed(0)} s to the first handled event`);
    return { page, blocks, leftOut, seconds, problems };
  } finally {
    await reader.end();
    await postgres?.stop();
  }
}

function lineOf({ page, blocks, leftOut, seconds }: Followed): string {
  const time = seconds === null ? "no event was handled" : `${seconds.toFixed(0)} s to the first handled event`;
  const rest = leftOut.map((each) => `\n  not followed: ${each}`).join("");
  return `${page.slice(FOLDER.length + 1).padEnd(20)} ${time}, ${blocks} blocks followed, ${leftOut.length} not${rest}`;
}

/** Somebody with an empty folder who does what the page says. */
class Reader {
  /** From the first step to the first handled event. */
  seconds: number | null = null;
  readonly #machine: Machine;
  readonly #folder: string;
  readonly #replaced: readonly (readonly [said: string, here: string])[];
  readonly #environment: Readonly<Record<string, string>>;
  readonly #beganAt = performance.now();
  readonly #running: Running[] = [];
  #latest: Running | null = null;
  /** How much each had printed before the latest command: what the page shows next is newer. */
  #before = new Map<Running, number>();

  static async begin(machine: Machine, name: string, postgres: PostgresServer | null): Promise<Reader> {
    return new Reader(machine, name, await freePort(), postgres?.url);
  }

  private constructor(machine: Machine, name: string, port: number, database: string | undefined) {
    this.#machine = machine;
    this.#folder = machine.folder(name);
    this.#environment = { ...machine.environment, PORT: `${port}` };
    this.#replaced = [
      [PORT_OF_TUTORIALS, `127.0.0.1:${port}`],
      ...(database === undefined ? [] : [[DATABASE_OF_TUTORIALS, database] as const]),
    ];
  }

  /** Returns what went wrong, or null. */
  async take(step: Step): Promise<string | null> {
    if (step.kind === "file") return this.#write(step.name, step.content);
    if (step.kind === "commands") return this.#run(this.#here(step.commands), step.exitCode);
    if (step.kind === "keeps running") return this.#start(this.#here(step.commands));
    if (step.kind === "prints") return this.#see(step.lines.map((line) => this.#here(line)));
    return null;
  }

  /** Ends all that still runs; returns a line for what did not end. */
  async end(): Promise<readonly string[]> {
    const ended = await Promise.all(this.#running.splice(0).map((each) => each.end()));
    return ended.flat();
  }

  #here(text: string): string {
    const placed = this.#replaced.reduce((changed, [said, here]) => changed.replaceAll(said, here), text);
    // The packed package in place of the published one.
    return placed.replace(/^(npm install .*)\boncehook\b/gm, `$1${this.#machine.tarball}`);
  }

  #write(name: string, content: string): null {
    const path = join(this.#folder, name);
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(path, content);
    return null;
  }

  #launch(commands: string): Running {
    this.#before = new Map(this.#running.map((each) => [each, each.lines.length]));
    this.#latest = new Running(commands, this.#folder, this.#environment);
    return this.#latest;
  }

  async #run(commands: string, exitCode: number): Promise<string | null> {
    const running = this.#launch(commands);
    const ending = await running.ends(COMMAND_MS);
    return ending === `${exitCode}` ? null : `it ended with ${ending}:\n${running.tail}`;
  }

  #start(commands: string): null {
    this.#running.push(this.#launch(commands));
    return null;
  }

  /** By the command before, or by what keeps running. */
  async #see(lines: readonly string[]): Promise<string | null> {
    const programmes = [this.#latest, ...this.#running].filter((each) => each !== null);
    const isIn = (each: Running) =>
      each.shows((printed) => isPrinted(lines, printed.slice(this.#before.get(each) ?? 0)));
    const isSeen = await Promise.any(programmes.map(async (each) => (await isIn(each)) || Promise.reject())).then(
      () => true,
      () => false,
    );
    if (!isSeen) {
      const printed = programmes.map(({ tail }) => tail).join("\n---\n");
      return `it does not print\n${lines.join("\n")}\nbut\n${printed}`;
    }
    if (lines.some((line) => /^\W*handled\b/.test(line))) this.seconds ??= (performance.now() - this.#beganAt) / 1000;
    return null;
  }
}
