/** Texts from outside that want to be a program: in every view they are text, and nothing of them is even tried. */
import type { Locator } from "playwright-core";
import { beforeEach, describe, expect, it } from "vitest";
import { createReceiver } from "../../../../src/index.ts";
import { silentLogger } from "../../../../src/internal/logger.ts";
import { sqliteStore } from "../../../../src/stores/sqlite.ts";
import { fixtures, incomingOf, signedRequest, TEST_SECRET } from "../../../../src/tools/testing/index.ts";
import { needsChromium, newPage } from "./support/browser.ts";
import type { Desk } from "./support/desk.ts";
import { HOSTILE_COUNT, hostileTexts } from "./support/hostile.ts";
import { deskOfSuite, type Visit } from "./support/visit.ts";

beforeEach(needsChromium);

/** Three of them are no valid Unicode, so they are never events. */
const EVENTS_OF_EACH_KIND = HOSTILE_COUNT - 3;
/** CI visits a message or a body of each text, others those of every fourth: half a minute less. */
const EVERY = process.env.CI === undefined ? 4 : 1;
const LONGEST_MS = 240_000;

/** What nothing that is shown may consist of: elements and attributes that run, load or lead elsewhere. */
const STRAYS = `(() => {
  const elements = "script, iframe, object, embed, img, video, audio, style, link, base, meta, template, math, marquee, foreignObject";
  const strays = [...document.body.querySelectorAll(elements)];
  for (const element of document.body.querySelectorAll("*"))
    for (const { name, value } of element.attributes)
      if (/^on|^style$|^srcdoc$|^is$|formaction|^action$/.test(name) || (/^(xlink:)?href$|^src$/.test(name) && !/^#\\//.test(value) && value !== "#main"))
        strays.push(element);
  return strays.map((element) => element.outerHTML.slice(0, 200));
})()`;

/** Goes through views in the page itself, without a journey to the test for each stop. */
const TOUR = `(async (stops) => {
  const pause = () => new Promise((resolve) => setTimeout(resolve, 1));
  const until = async (done, what) => {
    for (let tries = 0; tries < 3000; tries++) {
      const found = done();
      if (found) return found;
      await pause();
    }
    throw new Error("There was no " + what + " at " + location.hash);
  };
  const button = (text) => [...document.querySelectorAll("button")].find((one) => one.textContent.trim().startsWith(text) && one.checkVisibility());
  let last = null;
  for (const { view, shows } of stops) {
    location.hash = "#/" + view;
    const heading = await until(() => [...document.querySelectorAll("main h1")].find((one) => one !== last && one.textContent.includes(shows)), "heading " + shows);
    await until(() => document.querySelector("main pre"), "body");
    (await until(() => button("Reveal"), "button to reveal")).click();
    const asked = await until(() => document.querySelector("dialog[open]") ?? button("Hide") ?? button("Mask"), "question");
    if (asked.localName === "dialog") [...asked.querySelectorAll("button")].find((one) => one.textContent.trim() === "Reveal").click();
    await until(() => button("Hide") ?? button("Mask"), "revealed body");
    for (const element of document.querySelectorAll("main *")) element.dispatchEvent(new MouseEvent("mouseover", { bubbles: true }));
    last = heading;
  }
})`;

async function nothingHappened({ page, watched, mishaps }: Visit): Promise<void> {
  const { executions, violations } = await watched();
  expect({ executions, violations, mishaps }).toEqual({
    executions: 0,
    violations: [],
    mishaps: { errors: [], dialogs: [] },
  });
  expect(await page.evaluate(STRAYS)).toEqual([]);
}

/** Presses Next until there is none. Resolves with how many rows there were. */
async function throughAllPages(list: Locator): Promise<number> {
  const next = list.getByRole("button", { name: "Next", exact: true });
  const links = list.locator("tbody [data-row]");
  const first = () => links.first().getAttribute("href");
  for (let rows = 0; ; ) {
    await links.first().waitFor();
    rows += await links.count();
    if ((await next.getAttribute("aria-disabled")) === "true") return rows;
    const seen = await first();
    await next.click();
    await expect.poll(first, { timeout: 15_000 }).not.toBe(seen);
  }
}

describe("500 hostile texts in every field", { timeout: LONGEST_MS }, () => {
  const at = deskOfSuite({ fill: fillWithHostileTexts, live: false });

  it("are alive: a page that takes texts for markup runs many of them", async () => {
    const { page } = await newPage();
    await page.evaluate("window.hacked = 0");
    await page.evaluate(
      `for (const text of ${JSON.stringify(hostileTexts())}) document.body.appendChild(document.createElement("div")).innerHTML = text;`,
    );
    const ran = await page.evaluate<number>(
      `[...document.body.querySelectorAll("*")].filter((one) => [...one.attributes].some(({ name }) => name.startsWith("on"))).length`,
    );
    expect(ran).toBeGreaterThan(100);
    await expect.poll(() => page.evaluate("window.hacked")).toBe(1);
  });

  it("are text in the lists, and in the audit", async () => {
    const { visiting: somebody } = at();
    await somebody.go("events");
    expect(await throughAllPages(somebody.page.locator("main"))).toBe(3 * EVENTS_OF_EACH_KIND);
    await nothingHappened(somebody);
    await somebody.go("dead");
    const letters = somebody.page.locator("main section").filter({ hasText: "Replay all…" });
    expect(await throughAllPages(letters)).toBe(EVENTS_OF_EACH_KIND);
    await nothingHappened(somebody);
    for (const view of ["quarantine", "overview", "audit"]) {
      await somebody.go(view);
      await nothingHappened(somebody);
    }
  });

  it("are text in messages and quarantined bodies, also once they are revealed", async () => {
    const { desk, visiting: somebody } = at();
    await somebody.go("overview");
    const stops = await stopsOf(desk);
    expect(stops.length).toBeGreaterThan(HOSTILE_COUNT / EVERY - 5);
    await somebody.page.evaluate(`${TOUR}(${JSON.stringify(stops)})`);
    await nothingHappened(somebody);
  });
});

/** Each text once: in an outbound message, in an event of a type that nobody knows, or in a quarantined body. */
async function stopsOf({ receiver: { inbox } }: Desk) {
  const lanes = (await inbox.findLanes({ order: "sequence", limit: 1_000 })).items;
  const events = (await inbox.find({ outcome: "unhandled", limit: 1_000 })).items;
  const bodies = (await inbox.findQuarantined({ limit: 1_000 })).items;
  const stops = [
    lanes.map(({ id, key }) => ({ view: `lane/${id}`, shows: key.name ?? "" })),
    events.map(({ laneId }) => ({ view: `lane/${laneId}`, shows: "Event" })),
    bodies.map(({ id }) => ({ view: `quarantine/${id}`, shows: `${id}` })),
  ];
  const each = stops.flatMap((some, kind) => some.filter((_, index) => index % stops.length === kind));
  return each.filter((_, index) => index % EVERY === 0);
}

/** Deliveries at once: more would be refused as an overload. */
const AT_ONCE = 100;

/** Each text is in every field of three events, of an error that a handler throws, of a quarantined body, and of an audit row. */
async function fillWithHostileTexts(path: string): Promise<void> {
  const receiver = createReceiver({
    secrets: TEST_SECRET,
    store: sqliteStore(path),
    logger: silentLogger,
    maxAttempts: 1,
    firstSequence: "any",
  });
  receiver.on(["message.failed", "message.inbound"], (event) => {
    const text = event.apiClientId;
    if (event.eventType === "message.failed") throw Object.assign(new Error(text), { code: text, name: text });
  });
  const texts = hostileTexts();
  const contents = texts.flatMap((text) => [failed(text), inbound(text), unknown(text), `${text} is not JSON`]);
  for (let first = 0; first < contents.length; first += AT_ONCE) {
    const some = contents.slice(first, first + AT_ONCE).map((content, index) => {
      const request = signedRequest(content);
      request.headers.traceparent = texts[(first + index) % texts.length] ?? "";
      return receiver.handle(incomingOf(request));
    });
    const refused = (await Promise.all(some)).find(({ status }) => status !== 200);
    if (refused !== undefined) throw new Error(`A hostile delivery was answered ${refused.status} ${refused.body}.`);
  }
  await receiver.drain();
  const { items } = await receiver.inbox.findLanes({ order: null, limit: texts.length });
  for (const [index, { id }] of items.entries()) await receiver.inbox.reveal(id, { by: texts[index] ?? "" });
  await receiver.stop();
}

/** Objects' own names are no keys that a parser takes. */
function named(text: string): object {
  return ["__proto__", "constructor", "prototype"].includes(text) ? {} : { [text]: { [text]: text } };
}

function failed(text: string): object {
  const data = {
    ...{ messageId: text, externalReference: text, sendFrom: text, to: text, status: text, providerMessageRef: text },
    error: { code: text, message: text, details: named(text) },
    ...named(text),
  };
  return { ...fixtures.failed({ messageId: text, apiClientId: text }), ...named(text), data };
}

function inbound(text: string): object {
  const data = {
    ...{ conversationId: text, numberId: text, from: text, to: text, body: text },
    media: [text, { url: text, contentType: text, ...named(text) }],
  };
  return { ...fixtures.inbound({ messageId: text, apiClientId: text, data }), ...named(text) };
}

function unknown(text: string): object {
  const event = fixtures.unknown({ eventType: text, apiClientId: text, data: { text, body: text, ...named(text) } });
  return { ...event, direction: text, messageId: text, sequence: text };
}
