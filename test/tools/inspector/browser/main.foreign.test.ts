/** What another site's page can do with the inspector, in the browser of somebody who may do everything there: nothing. */
import { createServer } from "node:http";
import { beforeEach, describe, expect, it, onTestFinished } from "vitest";
import { needsChromium, newPage } from "./support/browser.ts";
import { FOREIGN_HOST } from "./support/chromium.ts";
import { type Desk, listen } from "./support/desk.ts";
import { deskOfTest } from "./support/visit.ts";

beforeEach(needsChromium);

/** Its page does nothing by itself. */
async function foreignSite(): Promise<{ port: string }> {
  const server = createServer((_request, response) => {
    response
      .writeHead(200, { "content-type": "text/html" })
      .end("<!doctype html><title>Elsewhere</title><p>Elsewhere</p>");
  });
  const origin = await listen(server);
  onTestFinished(() => void server.close());
  return { port: new URL(origin).port };
}

/** Runs in the foreign page: every way there is to ask another origin. Resolves with what each way got. */
const ATTEMPTS = `(async ({ url, dead, held }) => {
  const got = {};
  const limited = (attempt) => Promise.race([attempt, new Promise((resolve) => setTimeout(() => resolve("nothing"), 1500))]);
  const reading = async (name, path, init) => {
    got[name] = await limited(
      fetch(url + path, init).then(async (answer) => answer.type === "opaque" ? "nothing" : answer.status + " " + (await answer.text()), () => "nothing"),
    );
  };
  const json = { "content-type": "application/json" };
  const act = "/api/events/" + dead + "/replay";
  const all = [];
  for (const credentials of ["omit", "include"]) {
    for (const mode of ["cors", "no-cors"]) {
      for (const path of ["", "/api/overview", "/api/lanes/1", "/assets/main.js"])
        all.push(reading(["GET", path, mode, credentials].join(" "), path, { credentials, mode }));
      const simple = { method: "POST", body: "{}", credentials, mode, headers: { "content-type": "text/plain" } };
      all.push(reading(["POST", "text", mode, credentials].join(" "), act, simple));
      all.push(reading(["POST", "reveal", mode, credentials].join(" "), "/api/lanes/1/reveal", simple));
      all.push(reading(["POST", "lookup", mode, credentials].join(" "), "/api/lookup", { ...simple, body: '{"text":"order-2207"}' }));
      all.push(reading(["POST", "discard", mode, credentials].join(" "), "/api/quarantine/" + held + "/discard", simple));
    }
    all.push(reading("POST json " + credentials, act, { method: "POST", body: "{}", credentials, headers: json }));
    const csrf = { ...json, "x-oncehook-inspector": "1" };
    all.push(reading("POST csrf " + credentials, act, { method: "POST", body: "{}", credentials, headers: csrf }));
    for (const method of ["PUT", "DELETE", "PATCH"]) all.push(reading(method + " " + credentials, act, { method, credentials }));
  }
  navigator.sendBeacon(url + act, new Blob(["{}"], { type: "text/plain" }));
  const element = (name, tag, change) => {
    const made = Object.assign(document.createElement(tag), change);
    all.push(limited(new Promise((resolve) => {
      made.onload = () => resolve("loaded");
      made.onerror = () => resolve("nothing");
      document.body.append(made);
    })).then((result) => { got[name] = result; }));
  };
  element("script page", "script", { src: url + "/assets/main.js" });
  element("module", "script", { type: "module", src: url + "/assets/main.js" });
  element("script data", "script", { src: url + "/api/overview" });
  element("image", "img", { src: url + "/api/overview" });
  element("style", "link", { rel: "stylesheet", href: url + "/assets/style.css" });
  const stream = (name, source) => all.push(limited(new Promise((resolve) => {
    source.onopen = () => resolve("open");
    source.onmessage = () => resolve("message");
    source.onerror = () => resolve("nothing");
  })).then((result) => { got[name] = result; source.close(); }));
  stream("EventSource", new EventSource(url + "/api/overview"));
  stream("EventSource with cookies", new EventSource(url + "/api/overview", { withCredentials: true }));
  stream("WebSocket", new WebSocket(url.replace("http", "ws") + "/api/overview"));
  await Promise.all(all);
  return got;
})`;

/** What somebody else's page may have changed. */
async function stateOf({ receiver: { inbox } }: Desk) {
  const { instances: _, ...stats } = await inbox.stats();
  return { stats, audit: await inbox.audit() };
}

async function idsOf({ receiver: { inbox } }: Desk) {
  const [dead] = (await inbox.find({ states: ["dead"], limit: 1 })).items;
  const [held] = (await inbox.findQuarantined({ states: ["held"], limit: 1 })).items;
  return { dead: dead?.id ?? 0, held: held?.id ?? 0 };
}

describe.each(["127.0.0.1", FOREIGN_HOST])("a page on another port of %s", (host) => {
  it("gets nothing and changes nothing, by fetch, elements, streams and sockets", async () => {
    const desk = await deskOfTest({ live: false });
    const before = await stateOf(desk);
    const { port } = await foreignSite();
    const { page } = await newPage();
    await page.goto(`http://${host}:${port}/`);
    const subject = JSON.stringify({ url: desk.url, ...(await idsOf(desk)) });
    const got = await page.evaluate<Record<string, string>>(`${ATTEMPTS}(${subject})`);
    expect(Object.keys(got).length).toBeGreaterThan(45);
    expect(Object.entries(got).filter(([, result]) => result !== "nothing")).toEqual([]);
    expect(await stateOf(desk)).toEqual(before);
    expect(desk.asked).toBe(0);
    // They did arrive, or nothing was shown.
    expect(desk.requests.filter((line) => line.startsWith("POST")).length).toBeGreaterThan(8);
    expect(desk.requests.filter((line) => / 2\d\d$/.test(line))).toEqual([]);
  });

  it("cannot frame the page, and a window that it opens is out of its reach", async () => {
    const desk = await deskOfTest({ live: false });
    const { port } = await foreignSite();
    const { page } = await newPage();
    await page.goto(`http://${host}:${port}/`);
    await page.evaluate(`new Promise((resolve) => {
      const frame = document.createElement("iframe");
      frame.onload = resolve;
      frame.src = ${JSON.stringify(desk.url)};
      document.body.append(frame);
    })`);
    const frames = await Promise.all(page.frames().map((frame) => frame.content()));
    expect(frames.filter((content) => content.includes("oncehook"))).toEqual([]);
    expect(desk.asked).toBe(0);
    const [opened] = await Promise.all([
      page.waitForEvent("popup"),
      page.evaluate(`{ window.other = window.open(${JSON.stringify(desk.url)}); }`),
    ]);
    await opened.waitForLoadState();
    expect(await opened.title()).toContain("oncehook");
    expect(
      await page.evaluate(`(() => { try { return other.closed || other.document.title } catch { return true } })()`),
    ).toBe(true);
    expect(await opened.evaluate("window.opener")).toBeNull();
  });
});

it("is not served under another name that leads to it", async () => {
  const desk = await deskOfTest({ live: false });
  const { page } = await newPage();
  const answer = await page.goto(desk.url.replace("127.0.0.1", FOREIGN_HOST));
  expect(answer?.status()).toBe(403);
  expect(await page.content()).not.toContain("<script");
  const data = await page.evaluate(`fetch("/inspector/api/overview").then((answer) => answer.json())`);
  expect(data).toMatchObject({ error: "host_not_allowed" });
  expect(desk.asked).toBe(0);
});
