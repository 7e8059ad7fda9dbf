/** How each view looks and reads: wide and narrow, light and dark, and for those who do not see it. */
import axe from "axe-core";
import type { Page } from "playwright-core";
import { beforeEach, describe, expect, it } from "vitest";
import { fixtures, incomingOf, signedRequest } from "../../../../src/tools/testing/index.ts";
import { NARROW, needsChromium, WIDE } from "./support/browser.ts";
import type { Desk } from "./support/desk.ts";
import { MESSAGES, NUMBER } from "./support/stories.ts";
import { deskOfTest, messageView, openAt, visit } from "./support/visit.ts";

beforeEach(needsChromium);

interface Finding {
  readonly id: string;
  readonly impact: string;
  readonly nodes: readonly { readonly target: readonly string[]; readonly failureSummary: string }[];
}

/** What axe finds serious or critical, each with where it is. */
async function findings(page: Page): Promise<readonly string[]> {
  await page.evaluate(axe.source);
  const found = await page.evaluate<readonly Finding[]>(
    `axe.run(document, { resultTypes: ["violations"] }).then(({ violations }) => violations)`,
  );
  return found
    .filter(({ impact }) => impact === "serious" || impact === "critical")
    .flatMap(({ id, nodes }) => nodes.map((node) => `${id}: ${node.target.join(" ")}: ${node.failureSummary}`));
}

/** Pixels that the page is wider than its window. */
function overflow(page: Page): Promise<number> {
  return page.evaluate<number>("document.documentElement.scrollWidth - document.documentElement.clientWidth");
}

async function viewsOf(desk: Desk): Promise<readonly string[]> {
  const told = [MESSAGES.late, MESSAGES.dead, MESSAGES.blocked, MESSAGES.inbound] as const;
  const messages = await Promise.all(told.map((messageId) => messageView(desk, messageId)));
  return ["events", "dead", "quarantine", "overview", "audit", ...messages];
}

/** For nine views on a machine that is busy: axe takes a second of an idle one for each. */
const LOOK_MS = 120_000;

const LOOKS = [
  { name: "1440 px, light", viewport: WIDE, colorScheme: "light" },
  { name: "1440 px, dark", viewport: WIDE, colorScheme: "dark" },
  { name: "360 px, light", viewport: NARROW, colorScheme: "light" },
  { name: "360 px, dark", viewport: NARROW, colorScheme: "dark" },
] as const;

describe.each(LOOKS)("at $name", ({ viewport, colorScheme }) => {
  it(
    "no view is wider than the window, or hard to use with help",
    async () => {
      const { desk, page, go, mishaps } = await openAt("events", {}, { viewport, colorScheme });
      const found: string[] = [];
      for (const view of await viewsOf(desk)) {
        await go(view);
        const wider = await overflow(page);
        if (wider > 0) found.push(`${view} is ${wider} px too wide`);
        found.push(...(await findings(page)).map((finding) => `${view}: ${finding}`));
      }
      expect(found).toEqual([]);
      expect(mishaps).toEqual({ errors: [], dialogs: [] });
    },
    LOOK_MS,
  );
});

/** Words of the drawing that run into others, out of their box, or out of the drawing. */
const CLASHES = `(() => {
  const svg = document.querySelector("main svg[role=group]");
  const boxOf = (element) => element.getBoundingClientRect();
  const meets = (a, b) => a.left < b.right - 2 && b.left < a.right - 2 && a.top < b.bottom - 2 && b.top < a.bottom - 2;
  const holds = (a, b) => a.left <= b.left && b.right <= a.right && a.top <= b.top + 2 && b.bottom <= a.bottom + 2;
  const words = [...svg.querySelectorAll("text")].filter(({ textContent }) => textContent !== "");
  const boxes = [...svg.querySelectorAll("rect:not(.pause), .mark")].map(boxOf);
  return words.flatMap((one, index) => {
    const name = one.textContent;
    const box = boxOf(one);
    return [
      ...words.slice(index + 1).filter((other) => meets(box, boxOf(other))).map((other) => name + " runs into " + other.textContent),
      ...boxes.filter((other) => meets(box, other) && !holds(other, box)).map(() => name + " runs out of its box"),
      ...(holds(boxOf(svg), box) ? [] : [name + " runs out of the drawing"]),
    ];
  });
})()`;
const DRAWN = Object.entries(MESSAGES).map(([name, messageId]) => ({ name, messageId }));

describe("at 1440 px", () => {
  it("a drawing uses the width, and its words stay in their places", async () => {
    const { desk, page, go } = await openAt();
    const found: string[] = [];
    for (const { name, messageId } of DRAWN) {
      await go(await messageView(desk, messageId));
      await page.locator("main svg[role=group]").waitFor();
      found.push(...(await page.evaluate<readonly string[]>(CLASHES)).map((clash) => `${name}: ${clash}`));
      const used = await page.evaluate<number>(
        `document.querySelector(".picture").scrollWidth / document.querySelector(".timeline").clientWidth`,
      );
      if (used > 1 || used < 0.9) found.push(`${name} uses ${used} of the width`);
    }
    expect(found).toEqual([]);
  });

  it("the list shows each message's id whole, as a link, below a head that stays in sight", async () => {
    const { page } = await openAt();
    const link = page.getByRole("link", { name: MESSAGES.inbound });
    await link.first().waitFor();
    expect(await link.first().getAttribute("href")).toMatch(/^#\/lane\/\d+/);
    expect(
      await page.locator(".c-lane").evaluateAll((all) => all.filter((one) => one.scrollWidth > one.clientWidth)),
    ).toEqual([]);
    await page.mouse.wheel(0, 600);
    await expect.poll(() => page.evaluate("scrollY")).toBe(600);
    expect((await page.locator("th").first().boundingBox())?.y).toBe(0);
  });
});

describe("at 390 px", () => {
  const PHONE = { width: 390, height: 844 };
  /** Elements that are cut, or that leave the window. */
  const cut = (page: Page, selector: string) =>
    page
      .locator(selector)
      .evaluateAll(
        (all, width) =>
          all
            .filter((one) => one.scrollWidth > one.clientWidth || one.getBoundingClientRect().right > width)
            .map(({ textContent }) => textContent),
        PHONE.width,
      );

  it("the list keeps the message's id and its state, both whole, and folds its filters", async () => {
    const { page } = await openAt("events?type=message.sent", {}, { viewport: PHONE });
    await page.locator("main tbody [data-row]").first().waitFor();
    expect(await page.locator("main .c-lane:visible, main .badge:visible").count()).toBeGreaterThan(20);
    expect(await cut(page, "main tbody td:is(.c-lane, .c-state, .c-time)")).toEqual([]);
    const field = page.getByLabel("Error code");
    expect(await field.isVisible()).toBe(false);
    const fold = page.getByRole("button", { name: "Filters (1 set)" });
    await fold.click();
    expect(await field.isVisible()).toBe(true);
    expect((await fold.boundingBox())?.width).toBeGreaterThan(300);
    await page.getByRole("searchbox").fill(NUMBER);
    await page.keyboard.press("Enter");
    await page.getByRole("dialog").getByRole("link").first().waitFor();
    expect(await cut(page, "dialog td:visible")).toEqual([]);
  });

  it("a drawing is whole, and can be walked through with the arrows", async () => {
    const { desk, page, go } = await openAt("events", {}, { viewport: PHONE });
    for (const { messageId } of DRAWN) {
      await go(await messageView(desk, messageId));
      await page.locator(".timeline .story").first().waitFor();
      expect(await cut(page, ".picture, .rail, .rail *:not(svg *, .sr-only), .story-list td")).toEqual([]);
    }
    await go(await messageView(desk, MESSAGES.late));
    const events = page.getByRole("group", { name: "Timeline of 3 events" }).getByRole("button");
    expect(await events.nth(1).textContent()).toContain("waited 22 min 48 s for 2: skipped");
    await events.nth(1).focus();
    await page.keyboard.press("ArrowDown");
    await page.keyboard.press("Enter");
    await page.getByRole("heading", { name: "Event 2 message.sent" }).waitFor();
  });
});

describe("an inbox without an event", () => {
  it("shows the command that sends one to the receiver, until one came", async () => {
    const { desk, page, go } = await openAt("events", { fill: async () => {} });
    await page.getByText(`npx oncehook trigger lifecycle --to ${desk.origin}/webhooks`).waitFor();
    const views = ["events", "dead", "quarantine", "overview", "audit"];
    const found: string[] = [];
    for (const view of views) {
      await go(view);
      found.push(...(await findings(page)));
    }
    expect(found).toEqual([]);
    await go("events");
    await desk.receiver.handle(incomingOf(signedRequest(fixtures.inbound({ occurredAt: Date.now() }))));
    await page.locator("main tbody [data-row]").waitFor();
    expect(await page.getByText("npx oncehook").count()).toBe(0);
  });
});

describe("at 360 px", () => {
  const NAME = `number.${"released_".repeat(20)}`;

  it("long words break, and what is beside them can be reached", async () => {
    const desk = await deskOfTest();
    const told = incomingOf(signedRequest({ ...fixtures.unknown({ occurredAt: Date.now() }), eventType: NAME }));
    await desk.receiver.handle(told);
    const [item] = (await desk.receiver.inbox.find({ eventType: NAME, limit: 1 })).items;
    const { page } = await visit(desk, `lane/${item?.laneId}`, { viewport: NARROW });
    await page.locator(".summary").waitFor();
    expect(await overflow(page)).toBe(0);
    const replay = page.getByRole("button", { name: /^Replay/ });
    const isSeen = async () => ((await replay.boundingBox())?.x ?? NARROW.width) < NARROW.width;
    expect(await isSeen()).toBe(true);
    await replay.click();
    const close = page.getByRole("dialog").getByRole("button", { name: "Close" });
    expect((await close.boundingBox())?.x).toBeLessThan(NARROW.width - 20);
  });

  it("times and names are whole: of a quarantined body, and of a dead letter", async () => {
    const { page, go } = await openAt("quarantine/1", { live: false }, { viewport: NARROW });
    const cut = (cells: string) =>
      page.locator(cells).evaluateAll((all) => all.filter((one) => one.scrollWidth > one.clientWidth).length);
    await page.locator(".facts").waitFor();
    expect(await page.locator("dd").count()).toBeGreaterThan(3);
    expect(await cut("dd")).toBe(0);
    await go("dead");
    const cells = "section:not(.groups) td:is(.c-event, .c-lane)";
    await page.locator(cells).first().waitFor();
    expect(await cut(cells)).toBe(0);
  });
});

describe("colours", () => {
  it("follow the scheme that the person chose", async () => {
    const { page } = await openAt();
    const lightness = () =>
      page.evaluate<number>(
        `getComputedStyle(document.body).backgroundColor.match(/\\d+/g).slice(0, 3).reduce((sum, part) => sum + Number(part), 0)`,
      );
    expect(await lightness()).toBeGreaterThan(600);
    await page.emulateMedia({ colorScheme: "dark" });
    expect(await lightness()).toBeLessThan(150);
  });
});
