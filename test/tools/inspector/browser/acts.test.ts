/** Acts on one event, message or body, and on many: by mouse and by keyboard, each with its line in the audit. */
import { beforeEach, describe, expect, it } from "vitest";
import { needsChromium } from "./support/browser.ts";
import type { Desk } from "./support/desk.ts";
import { buttonOf, byMouse, holdBack, type Press, told } from "./support/pressing.ts";
import { MESSAGES } from "./support/stories.ts";
import { deskOfSuite, laneOf, messageView } from "./support/visit.ts";

beforeEach(needsChromium);

/** Goes there by the Tab key alone. */
const byKeyboard: Press = async (page, name) => {
  const button = await buttonOf(page, name);
  await button.waitFor();
  for (let tabs = 0; tabs < 80; tabs++) {
    if (await button.evaluate((element) => element.ownerDocument.activeElement === element))
      return page.keyboard.press("Enter");
    await page.keyboard.press("Tab");
  }
  throw new Error(`The keyboard does not reach ${name}.`);
};

const WAYS = [
  { way: "by mouse", press: byMouse },
  { way: "by keyboard", press: byKeyboard },
] as const;

async function audited({ receiver }: Desk): Promise<readonly string[]> {
  return (await receiver.inbox.audit(10)).map(({ act, by, detail }) => `${by} ${act} ${detail}`);
}

async function heldIn({ receiver }: Desk): Promise<number> {
  const [held] = (await receiver.inbox.findQuarantined({ states: ["held"] })).items;
  return held?.id ?? 0;
}

async function deadOf({ receiver }: Desk, messageId: string): Promise<number> {
  const [event] = (await receiver.inbox.find({ lane: messageId, states: ["dead"] })).items;
  return event?.id ?? 0;
}

describe.each(WAYS)("acts on one $way", ({ press }) => {
  const at = deskOfSuite({ live: false });

  it("replay a dead letter from the list", async () => {
    const { desk, visiting } = at();
    const id = await deadOf(desk, MESSAGES.dead);
    await visiting.go("dead");
    await press(visiting.page, new RegExp(`^Replay event ${id}$`));
    await press(visiting.page, /^Replay$/);
    await told(visiting.page, `Replay event ${id}: done.`);
    expect(await audited(desk)).toContain(`alex replay event ${id}`);
    expect(await deadOf(desk, MESSAGES.dead)).toBe(0);
    await visiting.page
      .getByRole("button", { name: new RegExp(`^Replay event ${id}$`) })
      .waitFor({ state: "detached" });
  });

  it("leave everything as it is when the question is answered with Cancel", async () => {
    const { desk, visiting } = at();
    const id = await deadOf(desk, "msg_7Q2dead10001");
    const before = await audited(desk);
    await visiting.go("dead");
    await press(visiting.page, new RegExp(`^Discard event ${id}$`));
    await press(visiting.page, /^Cancel$/);
    await visiting.page.getByRole("dialog").waitFor({ state: "detached" });
    expect(await audited(desk)).toEqual(before);
    expect(await visiting.page.evaluate("document.activeElement.textContent")).toContain(`event ${id}`);
  });

  it("discard a dead letter in its message", async () => {
    const { desk, visiting } = at();
    const id = await deadOf(desk, "msg_7Q2dead10002");
    await visiting.go(`lane/${await laneOf(desk, "msg_7Q2dead10002")}?event=${id}`);
    await press(visiting.page, /^Discard 2 message.sent/);
    await press(visiting.page, /^Discard$/);
    await told(visiting.page, /: done\.$/);
    expect(await audited(desk)).toContain(`alex discard event ${id}`);
  });

  it("unblock a lane", async () => {
    const { desk, visiting } = at();
    await visiting.go(await messageView(desk, MESSAGES.blocked));
    await press(visiting.page, /^Unblock/);
    await press(visiting.page, /^Unblock$/);
    await told(visiting.page, /: done\.$/);
    expect(await audited(desk)).toContain(`alex unblock lane ${await laneOf(desk, MESSAGES.blocked)}`);
    expect((await desk.receiver.inbox.stats()).gauges.blockedLanes).toBe(0);
  });

  it("release a gap", async () => {
    const { desk, visiting } = at();
    await visiting.go(await messageView(desk, MESSAGES.waiting));
    await press(visiting.page, /^Release gap/);
    await press(visiting.page, /^Release gap$/);
    await told(visiting.page, /: done\.$/);
    expect(await audited(desk)).toContain(`alex release_gap lane ${await laneOf(desk, MESSAGES.waiting)}`);
  });

  it("discard a quarantined body", async () => {
    const { desk, visiting } = at();
    const id = await heldIn(desk);
    await visiting.go("quarantine");
    await press(visiting.page, new RegExp(`^Discard body ${id}$`));
    await press(visiting.page, /^Discard$/);
    await told(visiting.page, `Discard body ${id}: done.`);
    expect(await audited(desk)).toContain(`alex discard_quarantined quarantine ${id}`);
  });

  it("say why a quarantined body cannot be replayed", async () => {
    const { desk, visiting } = at();
    await visiting.go(`quarantine/${await heldIn(desk)}`);
    await press(visiting.page, /^Replay/);
    await press(visiting.page, /^Replay$/);
    await told(visiting.page, /not done. The body is still not a valid event/);
  });
});

describe.each(WAYS)("bulk work $way", ({ press }) => {
  const at = deskOfSuite({ live: false });

  it("counts first, and changes nothing before it is confirmed", async () => {
    const { desk, visiting } = at();
    await visiting.go("dead");
    await press(visiting.page, /^Replay all/);
    await told(visiting.page, /would be replayed/);
    expect((await desk.receiver.inbox.stats()).gauges.dead).toBe(6);
    await visiting.page.keyboard.press("Escape");
    await visiting.page.getByRole("dialog").waitFor({ state: "detached" });
    expect(await audited(desk)).toHaveLength(1);
  });

  it("can be stopped, and does the rest when asked again", async () => {
    const { desk, visiting } = at();
    await visiting.go("dead");
    await press(visiting.page, /^Discard all/);
    await told(visiting.page, /6 would be discarded/);
    await visiting.page.getByLabel(/At most/).fill("0.2");
    await press(visiting.page, /^Discard 6$/);
    await press(visiting.page, /^Stop$/);
    await told(visiting.page, /Stopped after/);
    const { dead } = (await desk.receiver.inbox.stats()).gauges;
    expect(dead).toBeGreaterThan(3);
    await press(visiting.page, /^Close$/);
    await press(visiting.page, /^Discard all/);
    await press(visiting.page, new RegExp(`^Discard ${dead}$`));
    await told(visiting.page, /(was|were) discarded/);
    expect((await desk.receiver.inbox.stats()).gauges.dead).toBe(0);
  });
});

describe("revealing", () => {
  const at = deskOfSuite({ live: false });

  it("shows numbers and texts, and is kept in the audit", async () => {
    const { desk, visiting } = at();
    await visiting.go(await messageView(desk, MESSAGES.inbound));
    const main = visiting.page.locator("main");
    await main.getByText("[hidden]").first().waitFor();
    expect(await main.textContent()).not.toMatch(/Thursday|0187/);
    await byMouse(visiting.page, /^Reveal/);
    await byMouse(visiting.page, /^Reveal$/);
    await main.getByText("Thursday after six").waitFor();
    expect(await main.textContent()).toContain("+14155550187");
    expect(await audited(desk)).toContain(`alex reveal lane ${await laneOf(desk, MESSAGES.inbound)}`);
    await visiting.go("audit");
    await visiting.page.getByRole("cell", { name: "alex" }).first().waitFor();
  });

  it("shows an event's digest, as is promised where it is not shown", async () => {
    const { desk, visiting } = at();
    await visiting.page.reload();
    await visiting.go(await messageView(desk, MESSAGES.plain));
    const digest = visiting.page.locator("dt", { hasText: /^Digest$/ }).locator("xpath=../dd");
    await digest.waitFor();
    expect(await digest.textContent()).toBe("shown with the body");
    await byMouse(visiting.page, /^Reveal/);
    await byMouse(visiting.page, /^Reveal$/);
    await expect.poll(() => digest.textContent()).toMatch(/^[0-9a-f]{64}$/);
  });

  it("of a quarantined body is done once, though it was pressed twice", async () => {
    const { desk, visiting } = at();
    const { page } = visiting;
    const id = await heldIn(desk);
    await visiting.go(`quarantine/${id}`);
    const flip = page.getByRole("button", { name: "Reveal" });
    await flip.waitFor();
    const held = await holdBack(page, "**/reveal");
    await flip.dblclick();
    held.letGo();
    await page.getByRole("button", { name: "Mask" }).click();
    await held.end();
    expect(held.asked).toBe(1);
  });

  it("is kept in the audit of a quarantined body too", async () => {
    const { desk, visiting } = at();
    const id = await heldIn(desk);
    await visiting.go(`quarantine/${id}`);
    await byMouse(visiting.page, /^Reveal/);
    await byMouse(visiting.page, /^(Reveal|Hide|Mask)/);
    await expect.poll(() => audited(desk)).toContain(`alex reveal_quarantined quarantine ${id}`);
  });

  it("is not offered to somebody who may only act, nor an act to somebody who may only read", async () => {
    const { desk, visiting } = at();
    desk.grant = "act";
    await visiting.page.reload();
    await visiting.go(await messageView(desk, MESSAGES.inbound));
    await visiting.page.getByText("[hidden]").first().waitFor();
    expect(await visiting.page.getByRole("button", { name: /^Reveal/ }).count()).toBe(0);
    desk.grant = "read";
    await visiting.page.reload();
    await visiting.go("dead");
    // It can be reached, and says that it is of no use.
    await (await buttonOf(visiting.page, /^Discard event/)).click({ force: true });
    await told(visiting.page, "You may look here, but not act.");
    expect(await visiting.page.getByRole("dialog").count()).toBe(0);
  });
});
