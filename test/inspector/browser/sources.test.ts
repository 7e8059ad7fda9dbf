/** The page is shipped small, but its sources are a page too: without a build, and the same to whoever looks. */
import { beforeEach, describe, expect, it } from "vitest";
import { filesUnder } from "../../../scripts/gates/gate.ts";
import { needsChromium } from "./support/browser.ts";
import type { DeskOptions } from "./support/desk.ts";
import { MESSAGES } from "./support/stories.ts";
import { deskOfTest, messageView, visit } from "./support/visit.ts";

const SOURCES = "src/inspector/page";

beforeEach(needsChromium);

const BOTH_MS = 90_000;

/** Each view whose words do not depend on the time at which it is opened, as a screen reader has it; and which modules were asked for. */
async function seen(options: DeskOptions) {
  const desk = await deskOfTest({ ...options, live: false });
  const { page, go, mishaps } = await visit(desk);
  const views = ["events", "dead", "quarantine", "audit"];
  for (const messageId of [MESSAGES.late, MESSAGES.dead] as const) views.push(await messageView(desk, messageId));
  const words: Record<string, string> = {};
  for (const view of views) {
    await go(view);
    await page.locator("main tbody tr").first().waitFor();
    await page.locator("main .loading").first().waitFor({ state: "detached" });
    words[view] = await page.locator("body").ariaSnapshot();
  }
  expect(mishaps).toEqual({ errors: [], dialogs: [] });
  const asked = desk.requests.flatMap((line) => /assets\/(\S+\.js) 200$/.exec(line)?.[1] ?? []);
  return { words, modules: [...new Set(asked)].sort() };
}

describe("the page's sources", () => {
  it("run in a browser as they are, and say what the shipped page says", { timeout: BOTH_MS }, async () => {
    const shipped = await seen({});
    const sources = await seen({ page: SOURCES });
    expect(shipped.modules).toEqual(["main.js", "vendor/htm-preact.js"]);
    expect(sources.modules).toEqual(filesUnder(SOURCES).filter((name) => name.endsWith(".js")));
    expect(Object.values(shipped.words).every((words) => words.length > 500)).toBe(true);
    expect(sources.words).toEqual(shipped.words);
  });
});
