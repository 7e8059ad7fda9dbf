/** The page without an inspector that answers: it must not show old figures as new ones. */
import type { Page } from "playwright-core";
import { beforeEach, describe, expect, it } from "vitest";
import { needsChromium, newPage } from "./support/browser.ts";
import { buttonOf, holdBack, told } from "./support/pressing.ts";
import { deskOfTest, openAt } from "./support/visit.ts";

beforeEach(needsChromium);

function isOff(page: Page, name: RegExp): Promise<string | null> {
  return buttonOf(page, name).then((button) => button.getAttribute("aria-disabled"));
}

describe("the connection's state", () => {
  it("is no longer live while the inbox cannot be read, and is again once it can", async () => {
    const { desk, page } = await openAt("overview", { live: false });
    desk.isInboxDown = true;
    await told(page, "Connection lost");
    desk.isInboxDown = false;
    await told(page, "Live");
  });

  it("says nothing of somebody's rights before it knows them", async () => {
    const desk = await deskOfTest({ live: false });
    const { page } = await newPage();
    const held = await holdBack(page, "**/api/overview");
    await page.goto(`${desk.url}#/dead`);
    // A button that says why it does nothing is one that Playwright would wait for.
    await (await buttonOf(page, /^Replay event/)).click({ force: true });
    await told(page, "The page does not know yet what you may do.");
    held.letGo();
    await expect.poll(() => isOff(page, /^Replay event/), { timeout: 10_000 }).toBeNull();
  });
});

describe("a list that could not be asked for", () => {
  it("says so where a page to sign in comes in the inspector's place", async () => {
    const desk = await deskOfTest({ live: false });
    const { page } = await newPage();
    const signIn = { status: 200, contentType: "text/html; charset=utf-8", body: "<!doctype html>" };
    await page.route("**/api/events", (route) => route.fulfill(signIn));
    await page.goto(desk.url);
    await page.getByRole("alert").filter({ hasText: "The answer did not come from the inspector" }).waitFor();
  });

  it.each(["dead", "quarantine"])("is asked for again once the page is connected again: %s", async (view) => {
    const { desk, page } = await openAt(view, { live: false });
    const note = page.getByRole("alert").filter({ hasText: "The inspector is closed." }).first();
    await desk.restart(async () => {
      await page.evaluate("dispatchEvent(new Event('acted'))");
      await note.waitFor();
    });
    await told(page, "Live");
    await note.waitFor({ state: "detached" });
  });
});
