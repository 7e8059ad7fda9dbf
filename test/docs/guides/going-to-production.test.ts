/**
 * The application of the guide, as a real process that is told to end.
 *
 * @module-tag full
 */
import { spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { connect } from "node:net";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { expect, it, onTestFinished } from "vitest";
import { examplesOf } from "../../../scripts/docs/blocks.ts";
import { tool } from "../../../scripts/gates/gate.ts";

const ROOT = join(import.meta.dirname, "../../..");
const PAGE = "docs/guides/going-to-production.md";

/** A folder with the application, compiled: inside the project, so that `oncehook` is its own package there. */
async function compiled(): Promise<string> {
  mkdirSync(join(ROOT, ".build"), { recursive: true });
  const folder = mkdtempSync(join(ROOT, ".build/production-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const [application] = examplesOf(PAGE, readFileSync(join(ROOT, PAGE), "utf8")).filter(
    ({ serves }) => serves !== undefined,
  );
  writeFileSync(join(folder, "application.ts"), application?.code ?? "");
  const compilerOptions = { target: "ES2023", module: "NodeNext", types: ["node"], skipLibCheck: true, strict: true };
  writeFileSync(join(folder, "tsconfig.json"), JSON.stringify({ compilerOptions }));
  expect(await tool(ROOT, "tsc", ["-p", folder])).toMatchObject({ code: 0 });
  return folder;
}

it("the application ends with 0 although it is told twice, and has a connection that sends nothing", async () => {
  const cwd = await compiled();
  writeFileSync(join(cwd, "webhook.key"), randomBytes(32).toString("hex"), { mode: 0o600 });
  const preload = pathToFileURL(join(ROOT, "scripts/docs/listen-anywhere.mjs")).href;
  const child = spawn(process.execPath, ["--import", preload, "application.js"], {
    cwd,
    env: { PATH: process.env.PATH, PORT: "0", WEBHOOK_SECRET: "an-example-secret-of-32-bytes-xx" },
    stdio: ["ignore", "ignore", "pipe", "ipc"],
  });
  onTestFinished(() => void child.kill("SIGKILL"));
  let said = "";
  child.stderr?.on("data", (chunk) => (said += chunk));
  const ended = once(child, "close").then(([code, signal]) => ({ code, signal, said }));
  const listening = once(child, "message").then(([message]) => message as { port: number });
  const { port } = await Promise.race([listening, ended.then((end) => Promise.reject(new Error(JSON.stringify(end))))]);
  const reaches = () =>
    new Promise<boolean>((resolve) => {
      const socket = connect(port, "127.0.0.1", () => resolve(true)).on("error", () => resolve(false));
      onTestFinished(() => void socket.destroy());
    });
  expect(await reaches()).toBe(true);
  expect((await fetch(`http://127.0.0.1:${port}/health`)).status).toBe(200);
  child.kill("SIGTERM");
  await expect.poll(reaches, { timeout: 15_000 }).toBe(false);
  child.kill("SIGTERM");
  expect(await ended).toEqual({ code: 0, signal: null, said: "" });
});
