/** How each view looks and reads: wide and narrow, light and dark, and for those who do not see it. */
import axe from "axe-core";
import type { Page } from "playwright-core";
import { beforeEach, describe, expect, it } from "vitest";
import { fixtures, incomingOf, signedRequest } from "../../../src/testing/index.ts";
import { NARROW, needsChromium, WIDE } from "./support/browser.ts";
import type { Desk } from "./support/desk.ts";
import { MESSAGES } from "./support/stories.ts";
import { deskOfTest, messageView, visit } from "./support/visit.ts";

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

/** Each view in both widths and both schemes; which of them go together makes no difference to what is looked for. */
const LOOKS = [
  { name: "1440 px, light", viewport: WIDE, colorScheme: "light" },
  { name: "360 px, dark", viewport: NARROW, colorScheme: "dark" },
] as const;

describe.each(LOOKS)("at $name", ({ viewport, colorScheme }) => {
  it(
    "no view is wider than the window, or hard to use with help",
    async () => {
      const desk = await deskOfTest();
      const { page, go, mishaps } = await visit(desk, "events", { viewport, colorScheme });
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

describe("at 360 px", () => {
  const NAME = `number.${"released_".repeat(20)}`;

  it("long words break, and what is beside them can be reached", async () => {
    const desk = await deskOfTest();
    const told = incomingOf(signedRequest({ ...fixtures.unknown({ occurredAt: Date.now() }), eventType: NAME }));
    await desk.receiver.handle(told);
    const [item] = (await desk.receiver.inbox.find({ eventType: NAME, limit: 1 })).items;
    const { page } = await visit(desk, `message/${item?.laneId}`, { viewport: NARROW });
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
    const desk = await deskOfTest({ live: false });
    const { page, go } = await visit(desk, "quarantine/1", { viewport: NARROW });
    const cut = (cells: string) =>
      page.locator(cells).evaluateAll((all) => all.filter((one) => one.scrollWidth > one.clientWidth).length);
    await page.locator(".facts").waitFor();
    expect(await page.locator("dd").count()).toBeGreaterThan(3);
    expect(await cut("dd")).toBe(0);
    await go("dead");
    const cells = "section:not(.groups) td.c-event";
    await page.locator(cells).first().waitFor();
    expect(await cut(cells)).toBe(0);
  });
});

describe("colours", () => {
  it("follow the scheme that the person chose", async () => {
    const desk = await deskOfTest();
    const { page } = await visit(desk);
    const lightness = () =>
      page.evaluate<number>(
        `getComputedStyle(document.body).backgroundColor.match(/\\d+/g).slice(0, 3).reduce((sum, part) => sum + Number(part), 0)`,
      );
    expect(await lightness()).toBeGreaterThan(600);
    await page.emulateMedia({ colorScheme: "dark" });
    expect(await lightness()).toBeLessThan(150);
  });
});
