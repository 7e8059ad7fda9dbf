/** The live list on 100,000 events: pages, filters, the search, and the keyboard. */
import type { Page } from "playwright-core";
import { beforeEach, describe, expect, it } from "vitest";
import { needsChromium } from "./support/browser.ts";
import { copiedId, copiedReference, fillWithCopies } from "./support/fill.ts";
import { holdBack } from "./support/pressing.ts";
import { fillWithStories } from "./support/scene.ts";
import { MESSAGES, NUMBER, REFERENCE } from "./support/stories.ts";
import { deskOfSuite, laneOf } from "./support/visit.ts";

beforeEach(needsChromium);

const COPIES = { messages: 33_000, dead: 333 };

const at = deskOfSuite({
  live: false,
  async fill(path) {
    await fillWithCopies(path, COPIES);
    await fillWithStories(path);
  },
});

/** Does something that makes the list ask anew, and waits until the answer is drawn. */
async function askedAnew(page: Page, act: () => Promise<unknown>): Promise<void> {
  const answered = page.waitForResponse((answer) => answer.url().endsWith("/api/events"));
  await act();
  await (await answered).finished();
  await page.evaluate("new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve)))");
}

/** Without how long ago something was, which changes by itself. */
async function rowsOf(page: Page): Promise<string[]> {
  const rows = await page.locator("main tbody tr").allTextContents();
  return rows.map((row) => row.replace(/\d+ \w+ ago/, ""));
}

function button(page: Page, name: string): Promise<void> {
  return page.getByRole("button", { name, exact: true }).click();
}

describe("the list of 100,000 events", () => {
  it("goes to the next page, back, and to the newest", async () => {
    const { page } = await atEvents();
    const first = await rowsOf(page);
    expect(first.length).toBe(50);
    await askedAnew(page, () => button(page, "Next"));
    const second = await rowsOf(page);
    expect(second.length).toBe(50);
    expect(second[0]).not.toBe(first[0]);
    await askedAnew(page, () => button(page, "Next"));
    await askedAnew(page, () => button(page, "Previous"));
    await expect.poll(() => rowsOf(page)).toEqual(second);
    await askedAnew(page, () => button(page, "Newest"));
    await expect.poll(() => rowsOf(page)).toEqual(first);
  });

  it('goes one page on and one back, though "Next" was pressed twice before the page was there', async () => {
    const { page, go } = await atEvents();
    await go("dead");
    const pages = page.getByRole("navigation", { name: "Pages of Dead letters" });
    const button = (name: string) => pages.getByRole("button", { name });
    const first = page.locator("main tbody input").first();
    await first.waitFor();
    const name = await first.getAttribute("aria-label");
    const held = await holdBack(page, "**/api/events");
    for (const _ of [1, 2]) await button("Next").click({ force: true });
    held.letGo();
    await expect.poll(() => first.getAttribute("aria-label")).not.toBe(name);
    await held.end();
    await button("Previous").click();
    await expect.poll(() => first.getAttribute("aria-label")).toBe(name);
  });

  it("shows what matches its filters, which the address keeps", async () => {
    const { page } = await atEvents();
    await askedAnew(page, () => page.locator("select[name=state]").selectOption("dead"));
    expect(new Set(await page.locator("main tbody .badge").allTextContents()).size).toBe(1);
    await askedAnew(page, async () => {
      await page.getByLabel("Error code").fill("TypeError");
      await page.keyboard.press("Enter");
    });
    await expect.poll(() => rowsOf(page).then(({ length }) => length)).toBe(1);
    expect(page.url()).toMatch(/error=TypeError/);
    await askedAnew(page, () => page.reload());
    expect(await rowsOf(page)).toHaveLength(1);
    await askedAnew(page, () => button(page, "Clear"));
    expect(await rowsOf(page)).toHaveLength(50);
  });

  it("has its rarer filters drawn once they are opened: by the time at which an event was accepted, say", async () => {
    const { page } = await atEvents();
    expect(await page.locator("input[type=datetime-local]").count()).toBe(0);
    await page.getByText("More filters").click();
    await page.getByLabel("Accepted to").fill("2001-01-01T00:00");
    await askedAnew(page, () => page.keyboard.press("Enter"));
    await page.getByText("No event matches.").waitFor();
    await page.getByText("More filters (1 set)").click();
    await page.locator("input[type=datetime-local]").first().waitFor({ state: "detached" });
    await askedAnew(page, () => button(page, "Clear"));
    expect(await rowsOf(page)).toHaveLength(50);
  });

  it("has no field whose text goes to a spell checker, which may be elsewhere", async () => {
    const { page } = await atEvents();
    await page.getByText("More filters").click();
    const fields = page.locator("input:is([type=text], [type=search])");
    await fields.nth(3).waitFor();
    expect(await fields.evaluateAll((all) => all.map((one) => (one as { spellcheck?: boolean }).spellcheck))).toEqual(
      Array(await fields.count()).fill(false),
    );
  });

  it("finds one message of 33,000 by its id, its reference and its number", async () => {
    const { page, go } = await atEvents();
    const lane = await laneOf(at().desk, copiedId(12_345));
    for (const text of [copiedId(12_345), copiedReference(12_345), "+14150012345"]) {
      await go("events");
      await page.keyboard.press("/");
      await page.keyboard.type(text);
      await page.keyboard.press("Enter");
      await page.getByRole("heading", { name: copiedId(12_345) }).waitFor();
      expect(new URL(page.url()).hash).toBe(`#/lane/${lane}`);
    }
  });

  it("never puts a number into the address", async () => {
    const { page } = await atEvents();
    await page.getByText("More filters").click();
    await askedAnew(page, async () => {
      await page
        .getByLabel(/Number/)
        .first()
        .fill(NUMBER);
      await page.keyboard.press("Enter");
    });
    expect((await rowsOf(page)).length).toBeGreaterThan(2);
    expect(page.url()).not.toContain("0187");
  });

  it("lists and downloads nothing where a number is gone with a reload, and says so", async () => {
    const { page } = await atEvents();
    await page.getByText("More filters").click();
    await askedAnew(page, async () => {
      await page.getByLabel("Number, whole").fill(NUMBER);
      await page.keyboard.press("Enter");
    });
    await page.reload();
    const note = page.getByRole("alert").filter({ hasText: "not kept over a reload" });
    await note.waitFor();
    expect(await rowsOf(page)).toEqual([]);
    let asked = 0;
    page.on("request", (request) => {
      if (request.url().endsWith("api/events")) asked += 1;
    });
    await button(page, "CSV");
    await page.evaluate("new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve)))");
    expect([asked, await note.count()]).toEqual([0, 1]);
    await askedAnew(page, () => button(page, "Clear"));
    expect(await rowsOf(page)).toHaveLength(50);
    // What went wrong with the CSV before was of another list.
    expect(await page.getByRole("alert").allTextContents()).toEqual([]);
  });

  it("lists all lanes of a number", async () => {
    const { page } = await atEvents();
    await page.getByRole("searchbox").fill(NUMBER);
    await page.keyboard.press("Enter");
    const found = page.getByRole("dialog");
    await found.getByRole("link").first().waitFor();
    expect(await found.locator("tbody tr").count()).toBe(2);
    await found.getByRole("link").last().click();
    await page.getByRole("heading", { name: MESSAGES.plain }).waitFor();
    expect(await page.locator("main").textContent()).toContain(REFERENCE);
  });

  it("says that nothing was found", async () => {
    const { page } = await atEvents();
    await page.getByRole("searchbox").fill("msg_of_nobody");
    await page.keyboard.press("Enter");
    await page
      .getByRole("dialog")
      .getByText(/^No lane has this/)
      .waitFor();
    await page.keyboard.press("Escape");
    await page.getByRole("dialog").waitFor({ state: "detached" });
  });
});

describe("the keyboard alone", () => {
  it("moves through the rows and opens one", async () => {
    const { page } = await atEvents();
    for (const key of ["j", "j", "j", "k"]) await page.keyboard.press(key);
    const focused = await page.evaluate<string>("document.activeElement.getAttribute('href')");
    const second = await page.locator("main tbody [data-row]").nth(1).getAttribute("href");
    expect(focused).toBe(second);
    await page.keyboard.press("Enter");
    await page.getByRole("heading", { level: 1, name: /^(Lane|Event) / }).waitFor();
    expect(page.url()).toContain(`${second}`);
  });

  it("opens every view, and the list of keys", async () => {
    const { page } = await atEvents();
    const views = { d: "Dead letters", q: "Quarantine", o: "Overview", a: "Audit", e: "Events" };
    for (const [key, title] of Object.entries(views)) {
      await page.keyboard.press("g");
      await page.keyboard.press(key);
      await page.getByRole("heading", { level: 1, name: title }).waitFor();
    }
    await page.keyboard.press("?");
    await page.getByRole("dialog", { name: "Keys" }).waitFor();
    await page.keyboard.press("Escape");
    await page.getByRole("dialog").waitFor({ state: "detached" });
  });

  it("leads to the events from an address that names no view", async () => {
    const { page, go } = await atEvents();
    for (const view of ["constructor", "__proto__", "nowhere"]) {
      await go(view);
      await page.getByRole("heading", { level: 1, name: "Events" }).waitFor();
    }
  });

  it("follows an event of a timeline", async () => {
    const { page, go } = await atEvents();
    await go(`lane/${await laneOf(at().desk, MESSAGES.late)}`);
    for (let tabs = 0; tabs < 40; tabs++) {
      await page.keyboard.press("Tab");
      if (await page.evaluate<boolean>("document.activeElement.closest('svg') !== null")) break;
    }
    await page.keyboard.press("Enter");
    await page.waitForURL(/event=\d+/);
    await page.getByRole("heading", { name: /^Event / }).waitFor();
  });
});

/** The page as it is when it is opened. */
async function atEvents() {
  const { visiting } = at();
  await visiting.page.goto("about:blank");
  await askedAnew(visiting.page, () => visiting.go("events"));
  return visiting;
}
