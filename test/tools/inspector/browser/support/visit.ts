/** Going about in the page as a person does: open a view, wait until it is drawn, find a message's number. */

import type { BrowserContextOptions, Page } from "playwright-core";
import { afterAll, beforeAll, expect, inject, onTestFinished } from "vitest";
import { type Mishaps, openPage } from "./browser.ts";
import { type Desk, type DeskOptions, openDesk } from "./desk.ts";
import { FORGET_WATCHED, READ_WATCHED, WATCH, type Watched } from "./in-page.ts";
import type { MESSAGES } from "./stories.ts";

const LONGEST_FILL_MS = 120_000;

/** A desk that ends with the test. */
export async function deskOfTest(options: DeskOptions = {}): Promise<Desk> {
  const desk = await openDesk(options);
  onTestFinished(() => desk.close());
  return desk;
}

export interface Visit {
  readonly page: Page;
  readonly mishaps: Mishaps;
  /** Opens `#/view`, and waits until it is drawn with its data. */
  go(view: string): Promise<void>;
  watched(): Promise<Watched>;
  forget(): Promise<void>;
}

/** Somebody at the desk, with the page open until the test ends. */
export async function visit(desk: Desk, view = "events", options: BrowserContextOptions = {}): Promise<Visit> {
  const { close, ...visiting } = await startVisit(desk, options);
  onTestFinished(close);
  await visiting.go(view);
  return visiting;
}

/** The same at a desk of the test's own. */
export async function openAt(view = "events", options: DeskOptions = {}, browser: BrowserContextOptions = {}) {
  const desk = await deskOfTest(options);
  return { desk, ...(await visit(desk, view, browser)) };
}

/** The same, without a view yet; its end is the caller's. */
async function startVisit(
  desk: Desk,
  options: BrowserContextOptions = {},
): Promise<Visit & { close(): Promise<void> }> {
  const { page, mishaps, close } = await openPage(options);
  await page.addInitScript(WATCH);
  return {
    page,
    mishaps,
    close,
    async go(view) {
      await page.goto(`${desk.url}#/${view}`);
      await settled(page);
    },
    watched: () => page.evaluate<Watched>(READ_WATCHED),
    forget: () => page.evaluate(FORGET_WATCHED).then(() => {}),
  };
}

/** A desk with somebody at it, for all tests of a suite. */
export function deskOfSuite(options: DeskOptions = {}): () => { readonly desk: Desk; readonly visiting: Visit } {
  let open: { desk: Desk; visiting: Visit & { close(): Promise<void> } } | undefined;
  beforeAll(async () => {
    if (inject("chromiumUrl") === "") return;
    const desk = await openDesk(options);
    open = { desk, visiting: await startVisit(desk) };
  }, LONGEST_FILL_MS);
  afterAll(async () => {
    await open?.visiting.close();
    await open?.desk.close();
  });
  return () => {
    if (open === undefined) throw new Error("The suite has not begun.");
    return open;
  };
}

/** The view's heading is there, and the page is connected. */
async function settled(page: Page): Promise<void> {
  await page.locator("main h1").waitFor();
  await page.getByText("Live", { exact: true }).waitFor();
}

export async function laneOf({ receiver }: Desk, messageId: string): Promise<number> {
  const { inbox } = receiver;
  const [ofLane] = (await inbox.find({ lane: messageId, limit: 1 })).items;
  const lane = (ofLane ?? (await inbox.find({ id: messageId, limit: 1 })).items[0])?.laneId;
  expect(lane).toBeDefined();
  return lane ?? 0;
}

/** The message of a story, as an address. */
export async function messageView(desk: Desk, messageId: (typeof MESSAGES)[keyof typeof MESSAGES]): Promise<string> {
  return `lane/${await laneOf(desk, messageId)}`;
}
