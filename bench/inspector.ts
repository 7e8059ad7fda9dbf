/** What the inspector costs: a page on a million events, a page under load in Chromium, and the receiver that is looked at. */
import { Agent, request } from "node:http";
import { setTimeout } from "node:timers/promises";
import type { Browser } from "playwright-core";
import { signPayload } from "../src/index.ts";
import type { Overview } from "../src/tools/inspector/index.ts";
import { median } from "../test/support/statistics.ts";
import { findChromium, launchChromium } from "../test/tools/inspector/browser/support/chromium.ts";
import {
  FIRST_ROW,
  FORGET_WATCHED,
  READ_WATCHED,
  WATCH,
  type Watched,
} from "../test/tools/inspector/browser/support/in-page.ts";
import { type Child, startChild } from "./child.ts";
import { bodyOf, nextMessageId, SECRET } from "./deliveries.ts";
import type { InspectedMode, InspectedQuestion } from "./inspector-server.ts";
import type { LoadResult } from "./load.ts";
import { type Group, grouped, type LeftOut, type Limit, type Row, ratioOf, row } from "./rows.ts";

const MESSAGES = 333_300;
const VISITS = 9;
/** A new profile still starts when its empty page is there: processes, mostly, on the cores that the visit needs. */
const PROFILE_STARTS_MS = 2_000;
const PER_SECOND = 1_000;
const LOADED_SECONDS = 10;
const ROUNDS = { count: 9, requests: 24_000 };

const FIRST: Limit = { name: "inspector: first rows of 1,000,000 events", target: 500, bound: "at most", unit: "ms" };
const FRAME: Limit = {
  name: "inspector: longest frame at 1,000 events/s",
  target: 100,
  bound: "at most",
  unit: "ms",
};
const WATCHED: Limit = { name: "accept, one looks at the inspector / nobody", target: 0.97, bound: "at least" };
const NO_CHROMIUM = "Chromium is not installed, and CHROMIUM_PATH names none";

export const inspectorGroup: Group = {
  names: [FIRST.name, FRAME.name, WATCHED.name],
  async run(wanted) {
    const rows: (Row | LeftOut)[] = [];
    if (wanted.has(FIRST.name) || wanted.has(FRAME.name)) rows.push(...(await inChromium()));
    if (wanted.has(WATCHED.name)) rows.push(await lookedAt());
    return rows.filter(({ name }) => wanted.has(name));
  },
};

interface Inspected {
  readonly child: Child;
  readonly origin: string;
  ask(question: InspectedQuestion): Promise<number>;
}

async function startInspected(messages: number, mode: InspectedMode): Promise<Inspected> {
  const child = startChild("inspector-server", [`${messages}`, mode]);
  const origin = await child.ask<string>({ ask: "listen" });
  return { child, origin, ask: (ask) => child.ask<number>({ ask }) };
}

async function inChromium(): Promise<readonly (Row | LeftOut)[]> {
  if (findChromium() === null) return [FIRST, FRAME].map(({ name }) => ({ name, reason: NO_CHROMIUM }));
  const inspected = await startInspected(MESSAGES, "handle");
  const browser = await launchChromium();
  try {
    return [await firstRows(browser, inspected), await underLoad(browser, inspected)];
  } finally {
    await browser.close();
    await inspected.child.stop();
  }
}

/** Each visit is of a new browser profile, so that nothing is cached; the first one warms the server up. */
async function firstRows(browser: Browser, { origin }: Inspected): Promise<Row> {
  const times: number[] = [];
  for (let visit = 0; visit <= VISITS; visit++) {
    const { page, close } = await open(browser, origin);
    const firstRowAt = await page.evaluate<number>(FIRST_ROW);
    if (visit > 0) times.push(firstRowAt);
    await close();
  }
  const worst = Math.max(...times).toFixed(0);
  return row(
    FIRST,
    median(times),
    `from the navigation of a browser at rest to the frame that shows them, nothing cached; at worst ${worst} ms`,
  );
}

async function underLoad(browser: Browser, { origin }: Inspected): Promise<Row> {
  const { page, close } = await open(browser, origin);
  await page.evaluate(FIRST_ROW);
  await page.waitForTimeout(2_000);
  await page.evaluate(FORGET_WATCHED);
  const sent = await deliverAt(origin, PER_SECOND, LOADED_SECONDS);
  const { longestFrameMs, longestTaskMs, frames, shift } = await page.evaluate<Watched>(READ_WATCHED);
  await close();
  if (frames < LOADED_SECONDS * 10) throw new Error(`Only ${frames} frames were drawn in ${LOADED_SECONDS} s.`);
  const seen = `${grouped(sent / LOADED_SECONDS)} events/s for ${LOADED_SECONDS} s, ${grouped(frames)} frames`;
  return row(
    FRAME,
    longestFrameMs,
    `${seen}, longest task ${longestTaskMs.toFixed(0)} ms, layout shift ${shift.toFixed(4)}`,
  );
}

async function open(browser: Browser, origin: string) {
  const context = await browser.newContext({ viewport: { width: 1440, height: 900 } });
  await context.addInitScript(WATCH);
  const page = await context.newPage();
  await page.waitForTimeout(PROFILE_STARTS_MS);
  await page.goto(`${origin}/inspector`, { waitUntil: "commit" });
  return { page, close: () => context.close() };
}

/** As evenly as timers go; every delivery must be answered 200. */
async function deliverAt(origin: string, perSecond: number, seconds: number): Promise<number> {
  const agent = new Agent({ keepAlive: true, maxSockets: 64 });
  const answers: Promise<void>[] = [];
  const start = performance.now();
  for (let ms = 0; ms < seconds * 1000; ms = performance.now() - start) {
    while (answers.length < (ms / 1000) * perSecond) answers.push(deliverOne(agent, origin));
    await setTimeout(5);
  }
  await Promise.all(answers);
  agent.destroy();
  return answers.length;
}

function deliverOne(agent: Agent, origin: string): Promise<void> {
  const body = bodyOf(nextMessageId());
  const headers = {
    ...signPayload({ body, secret: SECRET }),
    "content-type": "application/json",
    "content-length": body.length,
  };
  return new Promise((resolve, reject) => {
    const sent = request(`${origin}/webhooks`, { method: "POST", agent, headers }, (answer) => {
      answer.resume();
      if (answer.statusCode === 200) answer.once("end", resolve);
      else reject(new Error(`A delivery was answered ${answer.statusCode}.`));
    });
    sent.once("error", reject);
    sent.end(body);
  });
}

/** The rate of a server that has a core to itself is one over its processor time; unlike the clock, that is the server's alone. */
async function lookedAt(): Promise<Row> {
  const load = startChild("load");
  const servers = await Promise.all([startInspected(100, "accept"), startInspected(100, "accept")]);
  const [, looked] = servers;
  const rates: number[][] = [[], []];
  const viewer = view(looked.origin);
  try {
    for (let round = 0; round <= ROUNDS.count; round++) {
      await load.ask({ make: ROUNDS.requests, lifecycles: false });
      for (const index of round % 2 === 0 ? [0, 1] : [1, 0]) {
        const server = servers[index];
        if (server === undefined) continue;
        await server.ask("begin");
        await load.ask<LoadResult>({ sendTo: Number(new URL(server.origin).port) });
        const perSecond = (1e6 * ROUNDS.requests) / (await server.ask("processor"));
        if (round > 0) rates[index]?.push(perSecond);
      }
    }
  } finally {
    viewer.stop();
    await Promise.all([load.stop(), ...servers.map(({ child }) => child.stop())]);
  }
  const [unseen = [], seen = []] = rates;
  if (viewer.lists === 0) throw new Error("Nobody looked: there is nothing to compare.");
  const detail = `${grouped(median(seen))} / ${grouped(median(unseen))} requests per second of processor; ${viewer.lists} lists were read`;
  return row(WATCHED, ratioOf(seen, unseen), detail);
}

/** Somebody who looks at the live list, without a browser: asks what the page asks, when the page would. */
interface Viewer {
  /** How often the list was read. */
  readonly lists: number;
  stop(): void;
}

const VIEWER_HEADERS = { "x-oncehook-inspector": "1", "content-type": "application/json" };

const ASKED_EVERY_MS = 2_000;

/** Asks the inspector at `origin` for its overview, and reads the newest events whenever something has changed. */
function view(origin: string): Viewer {
  const gone = new AbortController();
  const { signal } = gone;
  const viewer = { lists: 0, stop: () => gone.abort() };
  const ask = async (path: string, init: RequestInit = {}) => {
    const answer = await fetch(`${origin}/inspector/api/${path}`, { ...init, signal });
    if (!answer.ok) throw new Error(`${path} was answered ${answer.status}.`);
    return answer.json();
  };
  const look = async () => {
    for (let changed: unknown; ; await setTimeout(ASKED_EVERY_MS, undefined, { signal })) {
      const overview = (await ask("overview")) as Overview;
      if (overview.changed === changed) continue;
      changed = overview.changed;
      await ask("events", { method: "POST", headers: VIEWER_HEADERS, body: '{"limit":50}' });
      viewer.lists += 1;
    }
  };
  look().catch((error: unknown) => {
    if (!signal.aborted) throw error;
  });
  return viewer;
}
