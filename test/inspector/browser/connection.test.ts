/** What the page says and does where the live stream does not come, or breaks off: old figures are not taken for new ones. */
import { beforeEach, describe, expect, it } from "vitest";
import { needsChromium, newPage } from "./support/browser.ts";
import { told } from "./support/pressing.ts";
import { deskOfTest, visit } from "./support/visit.ts";

beforeEach(needsChromium);

describe("the connection's state", () => {
  it("is no longer live while the inbox cannot be read, and is again once it can", async () => {
    const desk = await deskOfTest({ live: false });
    const { page } = await visit(desk, "overview");
    desk.isInboxDown = true;
    await told(page, "Connection lost");
    desk.isInboxDown = false;
    await told(page, "Live");
  });

  it("is mended by another connection where nothing comes on one for 45 s", async () => {
    const desk = await deskOfTest({ live: false });
    const { page } = await newPage();
    await page.clock.install();
    let asked = 0;
    await page.route("**/api/stream", (route) => (++asked === 1 ? undefined : route.continue()));
    await page.goto(`${desk.url}#/overview`);
    await expect.poll(() => asked).toBe(1);
    await page.clock.runFor(44_000);
    expect(asked).toBe(1);
    await page.clock.runFor(3_000);
    await told(page, "Live");
  });
});
