/** Answers that come after somebody has asked for something else, or gone elsewhere: they take nobody anywhere. */
import type { Page } from "playwright-core";
import { beforeEach, describe, expect, it } from "vitest";
import { needsChromium } from "./support/browser.ts";
import { MESSAGES } from "./support/stories.ts";
import { laneOf, openAt } from "./support/visit.ts";

beforeEach(needsChromium);

/** Holds the first request of those that match back; the function lets it go, and waits until its answer is there. */
async function heldBack(page: Page, path: string, matches: (body: string) => boolean) {
  let letGo = () => {};
  const held = new Promise<void>((resolve) => {
    letGo = resolve;
  });
  let asked = () => {};
  const isAsked = new Promise<void>((resolve) => {
    asked = resolve;
  });
  let isFirst = true;
  await page.route(`**/${path}`, async (route) => {
    if (isFirst && matches(route.request().postData() ?? "")) {
      isFirst = false;
      asked();
      await held;
    }
    await route.continue();
  });
  return {
    isAsked,
    async come(): Promise<void> {
      const answered = page.waitForResponse(
        (answer) => answer.url().endsWith(path) && matches(answer.request().postData() ?? ""),
      );
      letGo();
      await (await answered).finished();
      // What it does, it does before the next drawing.
      await page.evaluate("new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve)))");
    },
  };
}

async function search(page: Page, text: string): Promise<void> {
  await page.getByRole("searchbox").fill(text);
  await page.keyboard.press("Enter");
}

describe("a late answer", () => {
  it("to a search does not take somebody away from what they searched for since", async () => {
    const { desk, page } = await openAt("events", { live: false });
    const first = await heldBack(page, "api/lookup", (body) => body.includes(MESSAGES.plain));
    await search(page, MESSAGES.plain);
    await first.isAsked;
    await search(page, MESSAGES.dead);
    await page.getByRole("heading", { name: MESSAGES.dead }).waitFor();
    await first.come();
    expect(new URL(page.url()).hash).toBe(`#/lane/${await laneOf(desk, MESSAGES.dead)}`);
  });

  it("to a search does not take somebody away from the view that they opened since", async () => {
    const { page, go } = await openAt("events", { live: false });
    for (const text of [MESSAGES.plain, "msg_of_nobody"]) {
      const first = await heldBack(page, "api/lookup", (body) => body.includes(text));
      await search(page, text);
      await first.isAsked;
      await go("audit");
      await first.come();
      expect([new URL(page.url()).hash, await page.getByRole("dialog").count()]).toEqual(["#/audit", 0]);
      await go("events");
    }
  });

  it("to an event's link does not either", async () => {
    const { page, go } = await openAt("dead", { live: false });
    const first = await heldBack(page, "api/events", (body) => body.includes('"limit":1}'));
    await page
      .getByRole("button", { name: /^event \d+$/ })
      .first()
      .click();
    await first.isAsked;
    await go("overview");
    await first.come();
    expect(new URL(page.url()).hash).toBe("#/overview");
  });

  it("to the page before of a list does not either", async () => {
    const { page, go } = await openAt("events?after=9", { live: false });
    await page.locator("main tbody [data-row]").first().waitFor();
    const first = await heldBack(page, "api/events", (body) => body.includes('"oldest"'));
    await page.getByRole("button", { name: "Previous", exact: true }).click();
    await first.isAsked;
    await go("overview");
    await first.come();
    expect(new URL(page.url()).hash).toBe("#/overview");
  });
});
