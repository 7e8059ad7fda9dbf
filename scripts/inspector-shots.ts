/** `npm run inspector:shots [-- FOLDER]`: the pictures of docs/inspector.md, of the page in Chromium on an inbox with every story. */
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { parseArgs } from "node:util";
import type { Browser, Page } from "playwright-core";
import { fixtures, incomingOf, lifecycle, seededRandom, signedRequest } from "../src/tools/testing/index.ts";
import { launchChromium } from "../test/tools/inspector/browser/support/chromium.ts";
import { type Desk, openDesk } from "../test/tools/inspector/browser/support/desk.ts";
import { refuseSome } from "../test/tools/inspector/browser/support/scene.ts";
import { MESSAGES, UNREACHABLE } from "../test/tools/inspector/browser/support/stories.ts";

const MOST_BYTES = 120_000;
const TRAFFIC_SECONDS = 25;
const WIDE = { width: 1280, height: 720 };
const NARROW = { width: 390, height: 844 };

interface Shot {
  readonly name: string;
  /** What follows `#/`, once it is known which message has which number. */
  readonly view: (lane: (messageId: string) => number) => string;
  readonly size?: { readonly width: number; readonly height: number };
  readonly scheme?: "dark";
  /** What is done before the picture is taken. */
  readonly before?: (page: Page) => Promise<void>;
}

const SHOTS: readonly Shot[] = [
  { name: "events", view: () => "events" },
  { name: "message", view: (lane) => `lane/${lane(MESSAGES.eventful)}`, size: { width: 1280, height: 600 } },
  { name: "message-retried", view: (lane) => `lane/${lane(MESSAGES.retried)}`, scheme: "dark" },
  { name: "dead-letters", view: () => "dead", before: countAll },
  { name: "quarantine", view: () => "quarantine", scheme: "dark" },
  { name: "overview", view: () => "overview", size: { width: 1280, height: 860 } },
  { name: "narrow", view: (lane) => `lane/${lane(MESSAGES.eventful)}`, size: NARROW, scheme: "dark" },
];

const { positionals } = parseArgs({ allowPositionals: true });
const [folder = "docs/inspector"] = positionals;
await mkdir(folder, { recursive: true });
const desk = await openDesk();
const browser = await launchChromium();
try {
  // Looked at meanwhile, so that there is something to draw over time.
  const looking = await browser.newPage();
  await looking.goto(desk.url);
  await traffic(desk);
  const lanes = await lanesOf(desk);
  for (const shot of SHOTS) await take(browser, desk, { shot, lanes });
} finally {
  await browser.close();
  await desk.close();
}

async function take(from: Browser, { url }: Desk, { shot, lanes }: { shot: Shot; lanes: ReadonlyMap<string, number> }) {
  const { name, view, size = WIDE, scheme = "light", before } = shot;
  const context = await from.newContext({ viewport: size, colorScheme: scheme, timezoneId: "UTC", locale: "en-GB" });
  const page = await context.newPage();
  await page.goto(`${url}#/${view((messageId) => lanes.get(messageId) ?? 0)}`);
  await page.locator("main h1").waitFor();
  await page.getByText("Live", { exact: true }).waitFor();
  await page.waitForTimeout(1_500);
  await before?.(page);
  const picture = await page.screenshot({ animations: "disabled" });
  await context.close();
  if (picture.length > MOST_BYTES) throw new Error(`${name}.png has ${picture.length} bytes, more than ${MOST_BYTES}.`);
  await writeFile(join(folder, `${name}.png`), picture);
  console.log(`${join(folder, `${name}.png`)} ${picture.length} bytes`);
}

/** Opens the question that comes before bulk work, with its dry run. */
async function countAll(page: Page): Promise<void> {
  await page.getByRole("button", { name: "Replay all…" }).click();
  await page.getByText("would be replayed").waitFor();
}

/** Whole messages, some a second and never quite the same number, and a few deliveries that are refused. */
async function traffic({ receiver }: Desk): Promise<void> {
  const random = seededRandom(11);
  await refuseSome(receiver);
  for (let second = 0; second < TRAFFIC_SECONDS; second++) {
    const started = performance.now();
    for (let left = 2 + random() * 9 * Math.sin((second / TRAFFIC_SECONDS) * Math.PI); left > 0; left--) {
      const id = Math.floor(random() * 36 ** 7).toString(36);
      const data = { externalReference: `order-${2400 + Math.floor(random() * 500)}` };
      const messageId = left < 1 && second % 6 === 0 ? `${UNREACHABLE}${id}` : `msg_7Q4${id}`;
      const events = lifecycle({
        messageId,
        data,
        occurredAt: Date.now(),
        ending: random() < 0.1 ? "failed" : "delivery",
      });
      const replies = random() < 0.2 ? [fixtures.inbound({ messageId: `msg_7Q6${id}`, occurredAt: Date.now() })] : [];
      for (const event of [...events, ...events.slice(0, random() < 0.2 ? 1 : 0), ...replies])
        await receiver.handle(incomingOf(signedRequest(event)));
    }
    await new Promise((resolve) => setTimeout(resolve, Math.max(0, 1_000 - (performance.now() - started))));
  }
}

async function lanesOf({ receiver }: Desk): Promise<ReadonlyMap<string, number>> {
  const wanted = Object.values(MESSAGES);
  const found = wanted.map(async (messageId) => {
    const named = await receiver.inbox.find({ lane: messageId, limit: 1 });
    return named.items.length > 0 ? named : receiver.inbox.find({ id: messageId, limit: 1 });
  });
  const pages = await Promise.all(found);
  return new Map(
    pages.flatMap(({ items }) => items.map(({ lane, ownId, laneId }) => [lane.name ?? ownId ?? "", laneId])),
  );
}
