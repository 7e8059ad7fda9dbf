/** The dialog of bulk work: what it lets begin, what it does, and how it closes. */
import { beforeEach, describe, expect, it } from "vitest";
import { incomingOf, lifecycle, signedRequest } from "../../../../src/tools/testing/index.ts";
import { needsChromium } from "./support/browser.ts";
import { fillWithCopies } from "./support/fill.ts";
import { buttonOf, byMouse, holdBack, shown, told } from "./support/pressing.ts";
import { MESSAGES } from "./support/stories.ts";
import { deskOfSuite, openAt } from "./support/visit.ts";

beforeEach(needsChromium);

describe("the dialog of bulk work", () => {
  const at = deskOfSuite({ live: false });

  it("lets nothing begin at a pace that is none", async () => {
    const { visiting } = at();
    await visiting.go("dead");
    await byMouse(visiting.page, /^Discard all/);
    await told(visiting.page, /6 would be discarded/);
    const begin = await buttonOf(visiting.page, /^Discard 6$/);
    const pace = visiting.page.getByLabel(/At most/);
    const canBegin = async (typed: string) => {
      await pace.fill("");
      await pace.pressSequentially(typed);
      return begin.isEnabled();
    };
    // What Chromium cannot read as a number it gives as an empty text.
    const paces = ["0", "-1", "-", "0.001", "100001", "", "0.2"];
    const answers: [string, boolean][] = [];
    for (const typed of paces) answers.push([typed, await canBegin(typed)]);
    expect(answers).toEqual(paces.map((typed) => [typed, typed === "" || typed === "0.2"]));
    await byMouse(visiting.page, /^Cancel$/);
  });

  it("leaves the others open at an Esc, where another dialog came over it", async () => {
    const { visiting } = at();
    const { page } = visiting;
    const held = await holdBack(page, "**/api/lookup");
    await visiting.go("dead");
    await page.getByRole("searchbox").fill("msg_of_nobody");
    await page.keyboard.press("Enter");
    await byMouse(page, /^Discard all/);
    held.letGo();
    await expect.poll(() => page.locator("dialog[open]").count()).toBe(2);
    await page.keyboard.press("Escape");
    await expect.poll(() => page.locator("dialog[open]").count()).toBe(1);
    await page.getByText(/would be discarded/).waitFor();
    await page.keyboard.press("Escape");
    await expect.poll(() => page.locator("dialog[open]").count()).toBe(0);
    await held.end();
  });

  it("stays open while it works, however often Esc is pressed, and asks first", async () => {
    const { desk, visiting } = at();
    await visiting.go("dead");
    await byMouse(visiting.page, /^Discard all/);
    await told(visiting.page, /6 would be discarded/);
    await visiting.page.getByLabel(/At most/).fill("0.2");
    await byMouse(visiting.page, /^Discard 6$/);
    await told(visiting.page, "Working…");
    // As while the button that was pressed is gone, and no other has the focus yet.
    await visiting.page.evaluate("document.activeElement.blur()");
    for (let presses = 0; presses < 5; presses++) await visiting.page.keyboard.press("Escape");
    await visiting.page.getByText("Closing stops the work.").waitFor();
    await byMouse(visiting.page, /^Stop and close$/);
    await visiting.page.getByRole("dialog").waitFor({ state: "detached" });
    expect((await desk.receiver.inbox.stats()).gauges.dead).toBeGreaterThan(3);
  });

  it("does what was counted, and leaves out what came since", async () => {
    const { desk, visiting } = at();
    const { inbox } = desk.receiver;
    const { dead } = (await inbox.stats()).gauges;
    await visiting.go("dead");
    await byMouse(visiting.page, /^Discard all/);
    await told(visiting.page, new RegExp(`^${dead} would be discarded`));
    for (const event of lifecycle({ messageId: MESSAGES.discarded, occurredAt: Date.now() }))
      await desk.receiver.handle(incomingOf(signedRequest(event)));
    await desk.receiver.drain();
    const since = (await inbox.stats()).gauges.dead - dead;
    expect(since).toBeGreaterThan(0);
    await byMouse(visiting.page, new RegExp(`^Discard ${dead}$`));
    await told(visiting.page, new RegExp(`^${dead} were discarded`));
    expect((await inbox.stats()).gauges.dead).toBe(since);
    await byMouse(visiting.page, /^Close$/);
  });
});

describe("bulk work that does not finish", () => {
  it("stops where nobody may act any more, and says why", async () => {
    const { desk, page } = await openAt("dead", { live: false });
    await shown(page.getByRole("checkbox", { name: /^Select event/ }));
    desk.grant = false;
    await page.getByRole("checkbox", { name: /selected/ }).check();
    await byMouse(page, /^Discard selected/);
    await byMouse(page, /^Discard 6$/);
    await told(page, /sign in again\. Start it again for the rest\.$/);
    expect((await desk.receiver.inbox.stats()).gauges.dead).toBe(6);
  });

  it("says that the connection was lost", async () => {
    const { desk, page } = await openAt("dead", { live: false });
    await byMouse(page, /^Discard all/);
    await told(page, /6 would be discarded/);
    await page.getByLabel(/At most/).fill("0.2");
    const begun = page.waitForResponse("**/api/bulk");
    await byMouse(page, /^Discard 6$/);
    await begun;
    await desk.close();
    await told(page, "It did not finish: the connection was lost. Start it again for the rest.");
  });
});

describe("the last page of dead letters", () => {
  it("is not the end of them when all of it is discarded", async () => {
    const { page } = await openAt("dead", {
      live: false,
      fill: (path) => fillWithCopies(path, { messages: 3, dead: 52 }),
    });
    const boxes = page.getByRole("checkbox", { name: /^Select event/ });
    await expect.poll(() => boxes.count()).toBe(50);
    const pages = page.getByRole("navigation", { name: "Pages of Dead letters" });
    await pages.getByRole("button", { name: "Next" }).click();
    await expect.poll(() => boxes.count()).toBe(3);
    await page.getByRole("checkbox", { name: /selected/ }).check();
    await byMouse(page, /^Discard selected/);
    await byMouse(page, /^Discard 3$/);
    await told(page, /^3 were discarded/);
    await byMouse(page, /^Close$/);
    await expect.poll(() => boxes.count()).toBe(50);
  });
});
