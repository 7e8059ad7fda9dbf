/** One Chromium for all tests of the page: started before them, stopped after. */
import { chromium } from "playwright-core";
import type { TestProject } from "vitest/node";
import { findChromium, launchOptions } from "../tools/inspector/browser/support/chromium.ts";

declare module "vitest" {
  interface ProvidedContext {
    /** Where it is connected to; empty where none is installed. */
    readonly chromiumUrl: string;
  }
}

export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  if (findChromium() === null) {
    project.provide("chromiumUrl", "");
    return async () => {};
  }
  const server = await chromium.launchServer(launchOptions());
  project.provide("chromiumUrl", server.wsEndpoint());
  return () => server.close();
}
