/** `npm run prove -- all`: every programme in a process of its own, some at once, and alone those that need it quiet. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import type { Programme } from "./programme.ts";

export interface Ending {
  readonly ok: boolean;
  /** What a programme says at its end. */
  readonly lastLine: string;
}

export interface Way {
  /** How many run at once, of those that bear it. */
  readonly atOnce: number;
  prove(name: string): Promise<Ending>;
  say(line: string): void;
}

/** Runs each and tells its last line; resolves with how many passed. */
export async function proveAll(
  programmes: readonly Pick<Programme, "name" | "needsQuiet">[],
  { atOnce, prove, say }: Way,
): Promise<number> {
  let passed = 0;
  const proveInTurn = async (names: string[]) => {
    for (let name = names.shift(); name !== undefined; name = names.shift()) {
      const { ok, lastLine } = await prove(name);
      if (ok) passed += 1;
      say(ok ? lastLine : `${lastLine.startsWith("FAIL") ? lastLine : `FAIL  ${name}: ${lastLine}`}`);
    }
  };
  const namesOf = (quiet: boolean) =>
    programmes.filter(({ needsQuiet = false }) => needsQuiet === quiet).map(({ name }) => name);
  const together = namesOf(false);
  await Promise.all(Array.from({ length: atOnce }, () => proveInTurn(together)));
  await proveInTurn(namesOf(true));
  say(`${passed} passed, ${programmes.length - passed} failed`);
  return passed;
}

/** Runs one by its name, as a person would; what it says on its way goes to standard error, behind its name. */
export async function proveApart(name: string, flags: readonly string[]): Promise<Ending> {
  const child = spawn(process.execPath, [process.argv[1] ?? "", name, ...flags], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  let lastLine = "";
  createInterface({ input: child.stdout }).on("line", (line) => {
    if (line !== "") lastLine = line;
    process.stderr.write(`${name.padEnd(10)} ${line}\n`);
  });
  const [code, signal] = await once(child, "close");
  return { ok: code === 0, lastLine: lastLine === "" ? `it ended with ${code ?? signal}` : lastLine };
}
