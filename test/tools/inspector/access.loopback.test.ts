/** Who may open the inspector of `oncehook inspect`, over real HTTP. */
import { type IncomingMessage, request as send } from "node:http";
import { describe, expect, it, onTestFinished } from "vitest";
import { nodeInspector } from "../../../adapters/node.ts";
import { silentLogger } from "../../../src/internal/logger.ts";
import { createLoopbackSession, type LoopbackOptions } from "../../../src/tools/inspector/access.ts";
import { createInspector } from "../../../src/tools/inspector/index.ts";
import { createFakeClock } from "../../../src/tools/testing/fake-clock.ts";
import { memoryReceiver } from "../../adapters/receivers.ts";
import { serve } from "../../adapters/serving.ts";

/** A standalone inspector on a free port. */
async function standalone(options: Partial<LoopbackOptions> = {}) {
  const clock = createFakeClock();
  const { receiver } = memoryReceiver();
  await receiver.start();
  let listener = (_request: IncomingMessage, _response: unknown) => {};
  const server = await serve((request, response) => listener(request, response));
  const session = createLoopbackSession({ port: server.port, access: "act", by: "ada", clock, ...options });
  const { path, origins, authorize } = session;
  const inspector = createInspector({ inbox: receiver.inbox, path, origins, authorize, logger: silentLogger });
  listener = nodeInspector(session.mount(inspector)) as typeof listener;
  onTestFinished(async () => {
    inspector.close();
    await server.close();
    await receiver.stop();
  });
  const origin = `http://127.0.0.1:${server.port}`;
  const get = (url: string, headers: Record<string, string> = {}, method = "GET") =>
    fetch(new URL(url, origin), { method, headers, redirect: "manual" });
  return { session, clock, origin, get, port: server.port };
}

/** The cookie as a browser sends it back. */
function cookieOf(response: Response): string {
  return response.headers.get("set-cookie")?.split(";")[0] ?? "";
}

/** With headers that fetch does not let one choose. */
function getAs(headers: Record<string, string>, url: string): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    send(url, { headers }, (response) => resolve(response.resume()))
      .on("error", reject)
      .end();
  });
}

describe("the link", () => {
  it("is exchanged for a cookie that no script reads and no other site or path sends, and leads to the page", async () => {
    const { session, get, port } = await standalone();
    const opened = await get(session.link());
    const { path } = session;
    expect([opened.status, opened.headers.get("location"), await opened.text()]).toEqual([303, `${path}/`, ""]);
    const attributes = `; HttpOnly; SameSite=Strict; Path=${path}`;
    expect(opened.headers.get("set-cookie")).toMatch(
      new RegExp(`^oncehook-inspector-${port}=[\\w-]{43}${attributes}$`),
    );
    expect([opened.headers.get("cache-control"), opened.headers.get("referrer-policy")]).toEqual([
      "no-store",
      "no-referrer",
    ]);
    const page = await get(`${path}/`, { cookie: `other=1; ${cookieOf(opened)}; more=2` });
    expect([page.status, page.headers.get("content-type")]).toEqual([200, expect.stringContaining("text/html")]);
  });

  it("can be opened once", async () => {
    const { session, get } = await standalone();
    const link = session.link();
    expect((await get(link)).status).toBe(303);
    const again = await get(link);
    expect([again.status, again.headers.get("set-cookie")]).toEqual([403, null]);
    expect(await again.text()).toMatch(/used, or is older than 60 s.*press Enter/);
  });

  it("can be opened for 60 s", async () => {
    const { session, get, clock } = await standalone();
    const inTime = session.link();
    await clock.advance(60_000);
    expect((await get(inTime)).status).toBe(303);
    const late = session.link();
    await clock.advance(60_001);
    expect((await get(late)).status).toBe(403);
  });

  it("is the newest one, and its own: a wrong token does not use it up", async () => {
    const { session, get } = await standalone();
    const [first, second] = [session.link(), session.link()];
    const wrong = second.replace(/.$/, (last) => (last === "A" ? "B" : "A"));
    for (const url of [first, wrong, `${session.path}/open`, `${session.path}/open?token=`])
      expect((await get(url)).status, url).toBe(403);
    expect((await get(second)).status).toBe(303);
  });

  it("is not used up by a look ahead, another method, or another site's Host or Origin", async () => {
    const { session, get, origin } = await standalone();
    const link = session.link();
    expect((await get(link, { "sec-purpose": "prefetch;prerender" })).status).toBe(503);
    for (const method of ["HEAD", "POST", "OPTIONS"]) {
      const { status, headers } = await get(link, {}, method);
      expect([status, headers.get("allow"), headers.get("content-type")], method).toEqual([
        405,
        "GET",
        "text/plain; charset=utf-8",
      ]);
    }
    expect((await get(link, { origin: "http://evil.example" })).status).toBe(403);
    expect((await get(link, { "sec-fetch-site": "same-site", "sec-fetch-mode": "cors" })).status).toBe(403);
    expect((await getAs({ host: "evil.example" }, link)).statusCode).toBe(403);
    const host = new URL(origin).host.replace("127.0.0.1", "localhost");
    expect((await getAs({ host }, link)).statusCode).toBe(303);
  });

  it("goes on by itself after a link on another site's page, which the cookie would not be sent after", async () => {
    const { session, get } = await standalone();
    const linked = { "sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate", "sec-fetch-dest": "document" };
    const { statusCode, headers } = await getAs(linked, session.link());
    expect([statusCode, headers.refresh]).toEqual([200, `0; url=${session.path}/`]);
    const [cookie = ""] = headers["set-cookie"]?.[0]?.split(";") ?? [];
    expect((await get(`${session.path}/`, { cookie })).status).toBe(200);
  });

  it("opens a second browser beside the first", async () => {
    const { session, get } = await standalone();
    const cookies = [cookieOf(await get(session.link())), cookieOf(await get(session.link()))];
    for (const cookie of cookies) expect((await get(`${session.path}/api/overview`, { cookie })).status).toBe(200);
  });
});

describe("a browser without the cookie", () => {
  it("gets nothing, and advice where the page would be", async () => {
    const { session, get } = await standalone();
    const { path } = session;
    const cookie = cookieOf(await get(session.link()));
    const [name = "", value = ""] = cookie.split("=");
    const wrong = [`${name}=`, `${name}=${value}x`, `${name}=${value.slice(1)}`, `${name}1=${value}`, value];
    for (const given of [undefined, ...wrong]) {
      const headers = given === undefined ? {} : { cookie: given };
      expect((await get(`${path}/api/overview`, headers)).status, given).toBe(401);
      const page = await get(`${path}/`, headers);
      expect([page.status, await page.text()]).toEqual([401, expect.stringContaining("press Enter")]);
    }
  });

  it("gets nothing with the cookie of another running inspector", async () => {
    const [one, other] = [await standalone(), await standalone()];
    const cookie = cookieOf(await one.get(one.session.link()));
    const value = cookie.split("=")[1];
    const answer = await other.get(`${other.session.path}/api/overview`, {
      cookie: `${cookie}; oncehook-inspector-${other.port}=${value}`,
    });
    expect(answer.status).toBe(401);
    expect(one.session.path).not.toBe(other.session.path);
  });

  it("learns at any other path only where a link comes from", async () => {
    const { session, get } = await standalone();
    for (const path of ["/", "/open", "/inspector/", `${session.path}x/`, "/favicon.ico"]) {
      const answer = await get(path);
      expect([answer.status, answer.headers.get("x-content-type-options")], path).toEqual([404, "nosniff"]);
      expect(await answer.text()).toContain("oncehook inspect");
    }
  });
});
