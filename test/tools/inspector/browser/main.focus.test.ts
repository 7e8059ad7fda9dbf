/** Where the keyboard is once what had the focus went away: in the view, and on its way through the rows. */
import type { Page } from "playwright-core";
import { beforeEach, describe, expect, it } from "vitest";
import { incomingOf, lifecycle, signedRequest } from "../../../../src/tools/testing/index.ts";
import { needsChromium } from "./support/browser.ts";
import { byMouse, holdBack, told } from "./support/pressing.ts";
import { MESSAGES } from "./support/stories.ts";
import { deskOfSuite, messageView } from "./support/visit.ts";

beforeEach(needsChromium);

const focused = (page: Page) => page.evaluate<string>("document.activeElement.id || document.activeElement.tagName");

describe("the focus", () => {
  const at = deskOfSuite();

  it("is in the view when its button went away with what it did", async () => {
    const { desk, visiting } = at();
    const { page, go } = visiting;
    await go("dead?code=ECONNREFUSED");
    await page.getByRole("link", { name: "Show all" }).press("Enter");
    await expect.poll(() => focused(page)).toBe("main");
    await go(await messageView(desk, MESSAGES.inbound));
    await byMouse(page, /^Reveal/);
    await byMouse(page, /^Reveal$/);
    await page.getByRole("button", { name: /^Hide/ }).press("Enter");
    await expect.poll(() => focused(page)).toBe("main");
  });

  it("is in the view when a dialog goes because its act is none any more", async () => {
    const { desk, visiting } = at();
    const { page, go } = visiting;
    await go(await messageView(desk, MESSAGES.waiting));
    await byMouse(page, /^Release gap/);
    await page.getByRole("dialog").waitFor();
    const [, missing = {}] = lifecycle({ messageId: MESSAGES.waiting, occurredAt: Date.now() });
    await desk.receiver.handle(incomingOf(signedRequest(missing)));
    await page.getByRole("dialog").waitFor({ state: "detached" });
    await expect.poll(() => focused(page)).toBe("main");
  });

  it("stays on Cancel while the dry run counts", async () => {
    const { page, go } = at().visiting;
    const held = await holdBack(page, "**/api/bulk");
    await go("dead");
    await byMouse(page, /^Discard all/);
    await page.getByRole("button", { name: "Cancel" }).focus();
    held.letGo();
    await told(page, /would be discarded/);
    expect(await page.evaluate("document.activeElement.textContent")).toBe("Cancel");
    await page.keyboard.press("Enter");
    await held.end();
  });

  it("goes on with j from a row's checkbox", async () => {
    const { page, go } = at().visiting;
    await go("dead");
    await page
      .getByRole("checkbox", { name: /^Select event/ })
      .first()
      .press("Space");
    await page.keyboard.press("j");
    expect(await focused(page)).toBe("A");
  });
});
