/** New events while a viewer looks: they appear without moving anything else, and the page says when the session ends. */
import { beforeEach, describe, expect, it } from "vitest";
import { incomingOf, lifecycle, signedRequest } from "../../../../src/tools/testing/index.ts";
import { needsChromium } from "./support/browser.ts";
import type { Desk } from "./support/desk.ts";
import { shown } from "./support/pressing.ts";
import { MESSAGES } from "./support/stories.ts";
import { deskOfTest, laneOf, openAt, visit } from "./support/visit.ts";

beforeEach(needsChromium);

/** A message's whole life, accepted now. */
async function deliver({ receiver }: Desk, messageId: string): Promise<void> {
  for (const event of lifecycle({ messageId, occurredAt: Date.now() }))
    await receiver.handle(incomingOf(signedRequest(event)));
}

describe("the live list", () => {
  it("shows what comes, and nothing that is there moves", async () => {
    const { desk, page, watched, forget, mishaps } = await openAt("events");
    await page.locator("main tbody [data-row]").first().waitFor();
    await forget();
    for (const number of [1, 2, 3]) {
      await deliver(desk, `msg_live_0000000${number}`);
      await shown(page.locator("main tbody tr", { hasText: `msg_live_0000000${number}` }));
    }
    const { shift, shifts } = await watched();
    expect({ shift, shifts }).toEqual({ shift: 0, shifts: [] });
    expect(mishaps).toEqual({ errors: [], dialogs: [] });
  });

  it("stands still while it is paused", async () => {
    const { desk, page } = await openAt("events");
    await page.getByRole("button", { name: "Pause" }).click();
    await deliver(desk, "msg_live_00000001");
    await expect
      .poll(() => desk.receiver.inbox.find({ lane: "msg_live_00000001" }).then(({ items }) => items.length))
      .toBe(3);
    // Longer than it takes to hear of it.
    await page.waitForTimeout(3_000);
    expect(await page.locator("main tbody").textContent()).not.toContain("msg_live");
    await page.getByRole("button", { name: "Pause" }).click();
    await page.locator("main tbody tr", { hasText: "msg_live_00000001" }).first().waitFor();
  });
});

describe("a list after a restart", () => {
  it("shows what came meanwhile, though the inspector counts anew", async () => {
    const { desk, page } = await openAt("events", { live: false });
    // The first, and again when the page is connected.
    const asked = () => desk.requests.filter((request) => request === "POST /inspector/api/events 200").length;
    await expect.poll(asked).toBe(2);
    await desk.restart(() => deliver(desk, "msg_live_00000001"));
    // Sooner than the receiver tells that it lives, which is news.
    await page.locator("main tbody tr", { hasText: "msg_live_00000001" }).first().waitFor({ timeout: 6_000 });
  });
});

describe("a message that goes on", () => {
  it("is drawn anew when its missing event comes", async () => {
    const desk = await deskOfTest();
    const { page } = await visit(desk, `lane/${await laneOf(desk, MESSAGES.waiting)}`);
    const summary = page.locator("main .summary");
    await summary.waitFor();
    expect(await summary.textContent()).toMatch(/waiting for sequence 2 until/);
    const [, sent] = lifecycle({ messageId: MESSAGES.waiting, occurredAt: Date.now() });
    await desk.receiver.handle(incomingOf(signedRequest(sent ?? "")));
    await expect.poll(() => summary.textContent(), { timeout: 10_000 }).toMatch(/was handled/);
  });
});

describe("the overview", () => {
  it("counts on without a reload", async () => {
    const { desk, page, watched, forget } = await openAt("overview");
    const { accepted } = (await desk.receiver.inbox.stats()).counters;
    const figure = page.getByRole("definition").filter({ hasText: new RegExp(`^${accepted + 3}$`) });
    await forget();
    await deliver(desk, "msg_live_00000001");
    await figure.first().waitFor();
    expect((await watched()).shift).toBeLessThan(0.001);
  });
});

describe("a session that has ended", () => {
  it("is reported at the next request", async () => {
    const { desk, page, go } = await openAt("events");
    desk.grant = false;
    await page.goto(`${desk.url}#/audit`);
    await page.getByRole("alert").first().waitFor();
    await page.reload();
    expect(await page.locator("body").textContent()).not.toContain("msg_");
    desk.grant = "read";
    await page.goto("about:blank");
    await go("events");
    await page.locator("main tbody [data-row]").first().waitFor();
  });
});
