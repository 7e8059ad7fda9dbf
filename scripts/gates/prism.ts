/** Prism, a foreign proxy that holds each call against an OpenAPI document. */
import { type ChildProcess, spawn } from "node:child_process";
import { run } from "./gate.ts";
import { DOCUMENT } from "./openapi.ts";

/** By npx, as it brings 300 packages that nothing else needs. */
const PRISM = "@stoplight/prism-cli@5.14.2";
const START_TIMEOUT_MS = 120_000;

/** Where npx keeps it; brings it when it is not there. */
export async function prismProgram(root: string): Promise<string> {
  const located = await run("npx", ["--yes", `--package=${PRISM}`, "-c", "command -v prism"], { cwd: root });
  if (located.code !== 0) throw new Error(`prism cannot be had\n${located.output}`);
  return located.stdout.trim();
}

export interface Prism {
  readonly url: string;
  stop(): Promise<void>;
}

interface Starting {
  readonly root: string;
  readonly upstream: string;
  /** With --errors, so that a violation becomes an error answer; without, it stands in a header and the call goes on. */
  readonly strict: boolean;
}

/** A difference from the document that prism found. */
export interface Violation {
  readonly location?: readonly string[];
}

/** Of an answer that came through prism without --errors. */
export function violationsIn({ headers }: Response): readonly Violation[] {
  return JSON.parse(headers.get("sl-violations") ?? "[]");
}

/** With --errors, prism answers in its own name when it found a violation; else null. */
export function refusalIn({ headers }: Response, text: string): string | null {
  return /problem\+json/.test(headers.get("content-type") ?? "") ? `prism refused it: ${text.slice(0, 2_000)}` : null;
}

/** Prism itself, not by npx: a signal to npx does not reach what it started. */
export async function startPrism(program: string, { root, upstream, strict }: Starting): Promise<Prism> {
  const args = [program, "proxy", DOCUMENT, upstream, "--port", "0", ...(strict ? ["--errors"] : [])];
  const child = spawn(process.execPath, args, { cwd: root, stdio: ["ignore", "pipe", "pipe"] });
  const ended = new Promise<void>((resolve) => child.once("close", () => resolve()));
  const stop = async () => {
    child.kill();
    await ended;
  };
  try {
    return { url: await addressOf(child), stop };
  } catch (error) {
    await stop();
    throw error;
  }
}

/** Where it listens, as its log says. */
function addressOf(child: ChildProcess): Promise<string> {
  return new Promise((resolve, reject) => {
    let output = "";
    const fail = () => reject(new Error(`prism did not start:\n${output.slice(-2_000)}`));
    const timer = setTimeout(fail, START_TIMEOUT_MS);
    const read = (chunk: Buffer) => {
      output += chunk;
      const url = /listening on (http:\/\/[\d.]+:\d+)/.exec(output)?.[1];
      if (url === undefined) return;
      clearTimeout(timer);
      resolve(url);
    };
    child.stdout?.on("data", read);
    child.stderr?.on("data", read);
    child.once("close", fail);
    child.once("error", fail);
  });
}
