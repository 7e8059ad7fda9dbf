/** The Chromium of this machine: where it is, and how the tests, the pictures and the benchmark start it. */
import { accessSync, constants } from "node:fs";
import { delimiter, join } from "node:path";
import { chromium, type LaunchOptions } from "playwright-core";

/** A site of somebody else: another name, at the same address. */
export const FOREIGN_HOST = "elsewhere.test";

/** CHROMIUM_PATH, or `chromium` on the PATH; null where there is none. */
export function findChromium(): string | null {
  const named = process.env.CHROMIUM_PATH;
  if (named !== undefined && named !== "") return named;
  const candidates = (process.env.PATH ?? "").split(delimiter).map((folder) => join(folder, "chromium"));
  return candidates.find(isExecutable) ?? null;
}

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}

/** @throws when there is no Chromium */
export function launchOptions(): LaunchOptions {
  const executablePath = findChromium();
  if (executablePath === null) throw new Error("There is no Chromium: install it, or set CHROMIUM_PATH.");
  const sandbox = process.getuid?.() === 0 ? ["--no-sandbox"] : [];
  // Elsewhere than on loopback nothing is asked for: a test that leaves the machine fails.
  const names = `--host-resolver-rules=MAP ${FOREIGN_HOST} 127.0.0.1, MAP * ~NOTFOUND, EXCLUDE 127.0.0.1, EXCLUDE localhost`;
  return { executablePath, args: [...sandbox, names, "--font-render-hinting=none"] };
}

/** A new browser. */
export function launchChromium() {
  return chromium.launch(launchOptions());
}
