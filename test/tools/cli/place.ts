/** Folders, files and servers that go with the test. */
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer, type RequestListener } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { onTestFinished } from "vitest";
import { listenOnLoopback } from "../../support/loopback.ts";

export function newFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), "oncehook-cli-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

/** In a folder of its own; readable by its owner only unless `mode` says otherwise. */
export function newFile(content: string | Uint8Array, mode = 0o600): string {
  const file = join(newFolder(), "file");
  writeFileSync(file, content);
  chmodSync(file, mode);
  return file;
}

/** The address of a server on loopback. */
export async function newServer(listener?: RequestListener): Promise<string> {
  const server = createServer(listener);
  const port = await listenOnLoopback(server);
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  return `http://127.0.0.1:${port}/`;
}

/** A receiver that takes every request and answers none; `asked` resolves with its first request. */
export async function startHanging(): Promise<{ readonly url: string; readonly asked: Promise<void> }> {
  let ask = () => {};
  const asked = new Promise<void>((resolve) => {
    ask = resolve;
  });
  return { url: await newServer(() => ask()), asked };
}
