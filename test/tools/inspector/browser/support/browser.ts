/** Pages for tests: each in a context of its own, closed with the test, and with all that went wrong in it written down. */
import { type Browser, type BrowserContextOptions, chromium, type Page } from "playwright-core";
import { inject, onTestFinished, type TestContext } from "vitest";

export const WIDE = { width: 1440, height: 900 };
export const NARROW = { width: 360, height: 740 };

let browser: Promise<Browser> | undefined;

function connected(): Promise<Browser> {
  browser ??= chromium.connect(inject("chromiumUrl"));
  return browser;
}

/** For `beforeEach`: skips the test, with a reason that the run prints and counts, where no Chromium is installed. */
export function needsChromium(context: TestContext): void {
  if (inject("chromiumUrl") === "") context.skip("no chromium on the PATH, and no CHROMIUM_PATH");
}

/** What a page did that none should do. */
export interface Mishaps {
  /** Uncaught errors, and errors and warnings on the console. */
  readonly errors: string[];
  readonly dialogs: string[];
}

/** A new page in a context of its own; its end is the caller's. */
export async function openPage(options: BrowserContextOptions = {}) {
  const context = await (await connected()).newContext({ viewport: WIDE, ...options });
  context.setDefaultTimeout(15_000);
  const page = await context.newPage();
  return { page, mishaps: watchMishaps(page), close: () => context.close() };
}

/** One that is closed with the test. */
export async function newPage(options: BrowserContextOptions = {}) {
  const { close, ...opened } = await openPage(options);
  onTestFinished(close);
  return opened;
}

function watchMishaps(page: Page): Mishaps {
  const mishaps: Mishaps = { errors: [], dialogs: [] };
  page.on("pageerror", (error) => mishaps.errors.push(error.message));
  page.on("console", (line) => {
    if (line.type() === "error" || line.type() === "warning") mishaps.errors.push(line.text());
  });
  page.on("dialog", (dialog) => {
    mishaps.dialogs.push(dialog.message());
    void dialog.dismiss();
  });
  return mishaps;
}
