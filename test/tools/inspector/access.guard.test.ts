/** Who gets past the guard: every Host with every Origin, site, method, header and right, over real HTTP. */
import { connect } from "node:net";
import { text } from "node:stream/consumers";
import { describe, expect, it } from "vitest";
import { idleTurns } from "../../receiver/bench.ts";
import { rows } from "../../setup/form.ts";
import { POST_HEADERS } from "./support/mounted.ts";
import { inspected, RIGHT } from "./support/scene.ts";

type Values = string | undefined;

const HOSTS = (host: string): readonly (readonly [Values, boolean])[] => [
  [host, true],
  [undefined, false],
  ["ops.example.net", false],
  [`${host}, ${host}`, false],
  [`${host}.`, false],
];
const ORIGINS = (origin: string): readonly (readonly [Values, boolean])[] => [
  [undefined, true],
  [origin, true],
  ["null", false],
  ["http://ops.example.net", false],
  [origin.replace("http:", "https:"), false],
];
const SITES: readonly (readonly [Readonly<Record<string, string>>, boolean])[] = [
  [{}, true],
  [{ "sec-fetch-site": "same-origin" }, true],
  [{ "sec-fetch-site": "none" }, true],
  [{ "sec-fetch-site": "same-site" }, false],
  [{ "sec-fetch-site": "cross-site" }, false],
  [{ "sec-fetch-site": "cross-site", "sec-fetch-mode": "no-cors", "sec-fetch-dest": "script" }, false],
];
const CALLS = [
  { method: "GET", url: "/inspector", needs: "read" },
  { method: "HEAD", url: "/inspector/", needs: "read" },
  { method: "GET", url: "/inspector/assets/main.js", needs: "read" },
  { method: "GET", url: "/inspector/api/overview", needs: "read" },
  { method: "HEAD", url: "/inspector/api/overview", allow: "GET" },
  { method: "POST", url: "/inspector/api/lanes/1/unblock", needs: "act" },
  { method: "POST", url: "/inspector/api/lanes/1/reveal", needs: "reveal" },
  { method: "GET", url: "/inspector/api/lanes/1/reveal", allow: "POST" },
  { method: "POST", url: "/inspector", allow: "GET, HEAD" },
  { method: "OPTIONS", url: "/inspector/api/events", allow: "POST" },
  { method: "PUT", url: "/inspector/api/events", allow: "POST" },
  { method: "DELETE", url: "/inspector/assets/main.js", allow: "GET, HEAD" },
] as const;
/** One of each kind: a page, an asset, an act, a method that is not allowed. */
const IN_SHORT: readonly (typeof CALLS)[number][] = [CALLS[0], CALLS[2], CALLS[6], CALLS[10]];
const RIGHTS = ["none", "read", "act", "reveal"] as const;
const NO_POST: readonly (readonly [Readonly<Record<string, string>>, string | null])[] = [[{}, null]];
const POSTS: readonly (readonly [Readonly<Record<string, string>>, string | null])[] = [
  [POST_HEADERS, null],
  [{ "content-type": "application/json" }, "csrf_header_missing"],
  [{ ...POST_HEADERS, "content-type": "text/plain" }, "invalid_request"],
];

/** What the rules say, written down a second time; null where the route itself is reached. */
function refusalOf(row: {
  readonly call: (typeof CALLS)[number];
  readonly isOwn: boolean;
  readonly isNear: boolean;
  readonly postRefusal: string | null;
  readonly right: (typeof RIGHTS)[number];
}): readonly [number, string] | null {
  const { call, isOwn, isNear, postRefusal, right } = row;
  if (!isOwn) return [403, "host_not_allowed"];
  if (!isNear) return [403, "origin_not_allowed"];
  if ("allow" in call) return [405, "method_not_allowed"];
  if (call.method === "POST" && postRefusal !== null)
    return [postRefusal === "invalid_request" ? 400 : 403, postRefusal];
  if (right === "none") return [401, "unauthorized"];
  return RIGHTS.indexOf(right) < RIGHTS.indexOf(call.needs) ? [403, "forbidden"] : null;
}

describe("the guard", () => {
  it.each(rows(CALLS, (call) => IN_SHORT.includes(call)))(
    "lets $method $url through from the own page alone, for who has the right",
    async (call) => {
      const { server } = await inspected();
      let rows = 0;
      let reached = 0;
      const { host } = new URL(server.origin);
      for (const [hostValue, isOwn] of HOSTS(host))
        for (const [origin, isOwnOrigin] of ORIGINS(server.origin))
          for (const [site, isOwnSite] of SITES)
            for (const [postHeaders, postRefusal] of call.method === "POST" ? POSTS : NO_POST)
              for (const right of RIGHTS) {
                const headers = { ...postHeaders, ...site, host: hostValue, origin, [RIGHT]: right };
                const body = call.method === "POST" || call.method === "PUT" ? "{}" : undefined;
                const answer = await server.ask({ ...call, headers, ...(body !== undefined && { body }) });
                const row = { call, isOwn, isNear: isOwnOrigin && isOwnSite, postRefusal, right };
                const expected = refusalOf(row);
                rows += 1;
                if (expected === null) {
                  reached += 1;
                  expect([401, 403, 405], JSON.stringify(headers)).not.toContain(answer.status);
                  continue;
                }
                const [status, code] = expected;
                expect(answer.status, JSON.stringify(headers)).toBe(status);
                // To HEAD no body is sent, and a person who opens the page reads no JSON.
                const isJson = answer.headers["content-type"]?.startsWith("application/json") && call.method !== "HEAD";
                if (isJson) expect(answer.json()).toMatchObject({ error: code, message: expect.any(String) });
                if (status === 405 && "allow" in call) expect(answer.headers.allow).toBe(call.allow);
              }
      expect(rows).toBe(call.method === "POST" ? 1_800 : 600);
      expect(reached > 0).toBe("needs" in call);
    },
  );

  it.each([
    ["GET", "/inspector", 200],
    ["GET", "/inspector/", 200],
    ["HEAD", "/inspector", 403],
    ["GET", "/inspector/assets/main.js", 403],
    ["GET", "/inspector/api/overview", 403],
    ["GET", "/inspector/nothing", 403],
  ])("lets a link on another page lead to %s %s: %i", async (method, url, status) => {
    const { server } = await inspected();
    const navigation = { "sec-fetch-mode": "navigate", "sec-fetch-dest": "document", [RIGHT]: "reveal" };
    for (const site of ["cross-site", "same-site"])
      expect(await server.ask({ method, url, headers: { ...navigation, "sec-fetch-site": site } })).toMatchObject({
        status,
      });
    const framed = { ...navigation, "sec-fetch-site": "cross-site", "sec-fetch-dest": "iframe" };
    expect(await server.ask({ method, url, headers: framed })).toMatchObject({ status: 403 });
  });

  it("asks nobody about who sent a request that it refuses", async () => {
    let asked = 0;
    const { server } = await inspected({
      authorize: () => {
        asked += 1;
        return "reveal";
      },
    });
    await server.ask({ headers: { host: "ops.example.net" } });
    await server.ask({ headers: { origin: "null" } });
    await server.ask({ method: "DELETE" });
    await server.ask({ method: "POST", url: "/inspector/api/events" });
    await server.ask({ url: "/elsewhere" });
    expect(asked).toBe(0);
    await server.ask();
    expect(asked).toBe(1);
  });

  it("takes origins and hosts in any case, with a default port or without", async () => {
    const { server } = await inspected({
      origins: ["HTTPS://Ops.Example.com:443", "http://[::1]", "http://x.test:81"],
    });
    const statusOf = async (headers: Readonly<Record<string, string>>) =>
      (await server.ask({ headers: { ...headers, [RIGHT]: "read" } })).status;
    for (const host of ["ops.example.com", "OPS.example.com:443", "[::1]", "[::1]:80", "x.test:81", "X.TEST:81"])
      expect([host, await statusOf({ host })]).toEqual([host, 200]);
    for (const host of [
      "ops.example.com:80",
      "[::1]:443",
      "x.test",
      "x.test:80",
      "x.test:810",
      "ops.example.com:443:443",
    ])
      expect([host, await statusOf({ host })]).toEqual([host, 403]);
    for (const origin of ["https://ops.example.com", "http://[::1]", "http://x.test:81"])
      expect([origin, await statusOf({ host: "[::1]", origin })]).toEqual([origin, 200]);
    for (const origin of [
      "http://ops.example.com",
      "https://x.test:81",
      "http://x.test",
      "https://ops.example.com/",
      "",
      "*",
    ])
      expect([origin, await statusOf({ host: "[::1]", origin })]).toEqual([origin, 403]);
  });

  it("says once a minute what to do about a Host or an Origin, and logs nothing that does not look like a host", async () => {
    const { server, log, clock } = await inspected();
    const ask = (headers: Readonly<Record<string, string>>) => server.ask({ headers });
    for (let turn = 0; turn < 5; turn++) {
      await ask({ host: "ops.example.net:8080" });
      await ask({ origin: "https://ops.example.net" });
    }
    expect(log).toMatchObject([
      { level: "warn", fields: { code: "host_not_allowed", host: "ops.example.net:8080" } },
      { level: "warn", fields: { code: "origin_not_allowed", origin: "https://ops.example.net" } },
    ]);
    expect(log.map(({ message }) => message).join()).toContain("option origins of createInspector()");
    await clock.advance(60_000);
    await ask({ host: "<b>+15550100002</b>" });
    expect(log.at(-1)?.fields).toEqual({ code: "host_not_allowed", host: null });
    expect(log).toHaveLength(3);
  });

  it("gives a foreign WebSocket nothing", async () => {
    const { server } = await inspected({ authorize: () => "reveal" });
    const answer = await server.ask({
      url: "/inspector/api/overview",
      headers: {
        ...{ connection: "Upgrade", upgrade: "websocket", "sec-websocket-version": "13" },
        ...{ "sec-websocket-key": "dGhlIHNhbXBsZSBub25jZQ==", origin: "https://ops.example.net" },
      },
    });
    expect(answer).toMatchObject({ status: 403 });
  });

  it("refuses a target in absolute form, as for a proxy", async () => {
    const { server } = await inspected({ authorize: () => "reveal" });
    const socket = connect(server.port, "127.0.0.1");
    const { host } = new URL(server.origin);
    socket.write(`GET http://${host}/inspector/api/overview HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\n\r\n`);
    expect(await text(socket)).toMatch(/^HTTP\/1\.1 404 /);
    await idleTurns(1);
  });
});
