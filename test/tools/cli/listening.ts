/** `oncehook listen`, as a process or in this one, and what is delivered to it. */
import { expect, vi } from "vitest";
import { signPayload } from "../../../src/index.ts";
import { listenCommand } from "../../../src/tools/cli/listen.ts";
import { runHere } from "./here.ts";
import { Running } from "./running.ts";

export const SECRET = "a-webhook-signing-secret-of-32-b";
export const SECRETS = {
  ONCEHOOK_WEBHOOK_SECRET: SECRET,
  ONCEHOOK_FORWARD_SECRET: "a-forwarding-secret-of-32-bytes-",
};

export async function deliver(url: string, event: object, secret = SECRET): Promise<number> {
  const body = JSON.stringify(event);
  const response = await fetch(url, { method: "POST", body, headers: signPayload({ body, secret }) });
  await response.arrayBuffer();
  return response.status;
}

/** As a process, whose output goes to the file `stdout` if it is not read here. */
export function startListening(store: string, flags: readonly string[] = [], stdout?: number): Running {
  return new Running(["listen", "--port=0", `--store=${store}`, "--json", ...flags], SECRETS, stdout);
}

export async function urlOf(running: Running): Promise<string> {
  const [, url = ""] = await running.printed(/^\{"listening":"(.*)"\}\n/);
  return url;
}

/** In this process, until it has said where it listens. */
export async function listenHere(flags: readonly string[], environment: NodeJS.ProcessEnv = SECRETS) {
  // The same spy that the command is run with: it tells what was printed so far.
  const written = vi.spyOn(process.stdout, "write");
  const printed = () => written.mock.calls.map(([text]) => text).join("");
  const ended = runHere(listenCommand(), ["--port=0", ...flags], environment);
  const url = () => /http:[^\s"]+/.exec(printed())?.[0] ?? "";
  await expect.poll(url, { interval: 5, timeout: 10_000 }).not.toBe("");
  const end = () => {
    process.emit("SIGTERM", "SIGTERM");
    return ended;
  };
  return { url: url(), written, printed, end };
}
