/** `npm run prove -- all`: every programme, one after the other, each in a process of its own. */
import { spawn } from "node:child_process";
import { once } from "node:events";

export interface Ending {
  readonly ok: boolean;
  /** What a programme says at its end. */
  readonly lastLine: string;
}

/** Runs each and tells its last line; resolves with how many passed. */
export async function proveAll(
  names: readonly string[],
  prove: (name: string) => Promise<Ending>,
  say: (line: string) => void,
): Promise<number> {
  let passed = 0;
  for (const name of names) {
    const { ok, lastLine } = await prove(name);
    if (ok) passed += 1;
    say(ok ? lastLine : `${lastLine.startsWith("FAIL") ? lastLine : `FAIL  ${name}: ${lastLine}`}`);
  }
  say(`${passed} passed, ${names.length - passed} failed`);
  return passed;
}

/** Runs one by its name, as a person would; what it says on its way goes to standard error. */
export async function proveApart(name: string, flags: readonly string[]): Promise<Ending> {
  const child = spawn(process.execPath, [process.argv[1] ?? "", name, ...flags], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  let text = "";
  child.stdout.setEncoding("utf8").on("data", (chunk: string) => {
    text += chunk;
    process.stderr.write(chunk);
  });
  const [code, signal] = await once(child, "close");
  const lastLine = text.trimEnd().split("\n").at(-1) ?? "";
  return { ok: code === 0, lastLine: lastLine === "" ? `it ended with ${code ?? signal}` : lastLine };
}
