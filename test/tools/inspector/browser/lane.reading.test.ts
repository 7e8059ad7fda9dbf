/** What somebody reads: it is the event that was chosen, it stays, and it can be read to its end. */
import { beforeEach, describe, expect, it } from "vitest";
import { incomingOf, lifecycle, signedRequest } from "../../../../src/tools/testing/index.ts";
import { needsChromium } from "./support/browser.ts";
import { byMouse } from "./support/pressing.ts";
import { MESSAGES } from "./support/stories.ts";
import { deskOfSuite, laneOf, messageView } from "./support/visit.ts";

beforeEach(needsChromium);

describe("an event", () => {
  const at = deskOfSuite();

  it("is the one whose row was pressed", async () => {
    const { page, go } = at().visiting;
    await go("events?state=dead");
    await page.locator("main tbody tr", { hasText: "message.sent" }).first().click();
    await page.getByRole("heading", { name: "Event 2 message.sent" }).waitFor();
  });

  it("stays, with a question about it, when another one of its message comes", async () => {
    const { desk, visiting } = at();
    const { page, go } = visiting;
    const messageId = "msg_that_goes_on";
    const [queued = {}, sent = {}, delivery = {}] = lifecycle({ messageId, occurredAt: Date.now() });
    const send = (event: object) => desk.receiver.handle(incomingOf(signedRequest(event)));
    for (const event of [queued, sent]) await send(event);
    await go(`lane/${await laneOf(desk, messageId)}`);
    await byMouse(page, /^Replay 2 message.sent/);
    await page.getByRole("dialog").waitFor();
    await send(delivery);
    await page.locator(".summary", { hasText: "Delivered" }).waitFor();
    expect(await page.getByRole("dialog").count()).toBe(1);
    await byMouse(page, /^Cancel$/);
    expect(await page.getByRole("heading", { name: "Event 2 message.sent" }).count()).toBe(1);
  });

  it("has a body that can be scrolled to its end", async () => {
    const { desk, visiting } = at();
    const { page, go } = visiting;
    await go(await messageView(desk, MESSAGES.plain));
    await byMouse(page, /^Reveal/);
    await byMouse(page, /^Reveal$/);
    await page.getByRole("heading", { name: /exactly as it came/ }).waitFor();
    const body = page.getByRole("region", { name: "Body" });
    expect(await body.evaluate((pre) => pre.scrollWidth - pre.clientWidth)).toBeGreaterThan(100);
    await body.hover();
    await page.mouse.wheel(5_000, 0);
    await expect.poll(() => body.evaluate((pre) => pre.scrollWidth - pre.clientWidth - pre.scrollLeft)).toBeLessThan(2);
  });
});
