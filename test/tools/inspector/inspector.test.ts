/** The inspector as a whole, over real HTTP: what each answer carries, and what becomes of failures. */
import { describe, expect, it } from "vitest";
import { createReceiver, StoreError } from "../../../src/index.ts";
import { memoryStore } from "../../../src/stores/memory.ts";
import { sqliteStore } from "../../../src/stores/sqlite.ts";
import { createInspector, type InspectorOptions } from "../../../src/tools/inspector/index.ts";
import { makeBench, newInboxFile, recordedLog, SECRET } from "../../receiver/bench.ts";
import { outbound } from "../../receiver/events.ts";
import { POST_HEADERS } from "./support/mounted.ts";
import { inspected, inspectedOn, RIGHT } from "./support/scene.ts";

const OVERVIEW = "/inspector/api/overview";
const SECURITY_HEADERS = {
  "x-content-type-options": "nosniff",
  "referrer-policy": "no-referrer",
  "cross-origin-opener-policy": "same-origin",
  "cross-origin-resource-policy": "same-origin",
  "x-frame-options": "DENY",
  "content-security-policy":
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; base-uri 'none'; " +
    "form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'",
};

describe("createInspector()", () => {
  const { logger } = recordedLog();
  const store = memoryStore({ volatile: true });
  const receiver = createReceiver({ secrets: SECRET, store, logger });
  const GOOD = { inbox: receiver.inbox, authorize: () => false, origins: ["https://ops.example.com"], logger };
  const made = (options: object) => () => createInspector({ ...GOOD, ...options } as unknown as InspectorOptions);

  it.each([
    [{ authorize: undefined }, "authorize", /There is no default/],
    [{ authorize: "read" }, "authorize", /"read", "act", "reveal" or false/],
    [{ authorize: true }, "authorize", /must be a function/],
    [{ origins: undefined }, "origins", /at least one origin/],
    [{ origins: [] }, "origins", /at least one origin/],
    [{ origins: "https://ops.example.com" }, "origins", /must list/],
    [{ origins: ["*"] }, "origins", /no "\*"/],
    [{ origins: ["https://*.example.com"] }, "origins", /no "\*"/],
    [{ origins: ["https://ops.example.com/"] }, "origins", /no slash at its end/],
    [{ origins: ["https://ops.example.com/inspector"] }, "origins", /no path/],
    [{ origins: ["https://ops.example.com?x"] }, "origins", /no path/],
    [{ origins: ["https://ann:secret@ops.example.com"] }, "origins", /as browsers show it/],
    [{ origins: ["ops.example.com"] }, "origins", /https:\/\//],
    [{ origins: ["ftp://ops.example.com"] }, "origins", /https:\/\//],
    [{ origins: ["https://ops.example.com", 7] }, "origins", /each/],
    [{ origins: ["https://"] }, "origins", /each/],
    [{ origins: ["https://ops.example.com:99999"] }, "origins", /each/],
    [{ path: "" }, "path", /begin with "\/"/],
    [{ path: "inspector" }, "path", /begin with "\/"/],
    [{ path: "/inspector/" }, "path", /without a slash at its end/],
    [{ path: "/a//b" }, "path", /parts/],
    [{ path: "/a/../b" }, "path", /parts/],
    [{ path: "/." }, "path", /parts/],
    [{ path: "/a b" }, "path", /parts/],
    [{ path: '/"><script>' }, "path", /parts/],
    [{ path: "/%61" }, "path", /parts/],
    [{ path: "/:tenant" }, "path", /parts/],
    [{ path: 7 }, "path", /begin with "\/"/],
    [{ inbox: undefined }, "inbox", /receiver\.inbox/],
    [{ inbox: receiver }, "inbox", /receiver\.inbox/],
    [{ inbox: store }, "inbox", /receiver\.inbox/],
    [{ inbox: Promise.resolve(receiver.inbox) }, "inbox", /resolves to/],
    [{ logger: {} }, "logger", /debug, info, warn and error/],
    [{ origin: ["https://ops.example.com"] }, "origin", /Did you mean "origins"/],
    [{ token: "x" }, "token", /Known: inbox, authorize/],
  ])("refuses the options %#: %s", (wrong, option, fix) => {
    const failure = expect.objectContaining({ name: "SetupError", code: "invalid_option", fields: { option } });
    expect(made(wrong)).toThrow(failure);
    expect(made(wrong)).toThrow(fix);
    expect(made(wrong)).not.toThrow(/secret/);
  });

  it("refuses to be made of nothing", () => {
    expect(() => createInspector(undefined as never)).toThrow("takes an options object");
  });

  it.each([
    [undefined, "/inspector"],
    ["/", ""],
    ["/ops", "/ops"],
    ["/a-b/c_d/e.f/~g", "/a-b/c_d/e.f/~g"],
  ])("mounted at %s has the path %j", (path, expected) => {
    expect(made(path === undefined ? {} : { path })().path).toBe(expected);
  });
});

describe("an inspector", () => {
  it("gives the inbox at a glance, and its history", async () => {
    const { server, receiver, deliver, clock } = await inspected();
    receiver.onAny(() => {});
    await receiver.start();
    await deliver(outbound("queued"));
    await clock.advance(1_000);
    const headers = { [RIGHT]: "act" };
    const overview = await server.ask({ url: OVERVIEW, headers });
    expect(overview.headers["content-type"]).toBe("application/json; charset=utf-8");
    expect(overview.json()).toMatchObject({
      ...{ now: clock.now(), location: null, access: "act", by: "inspector", serviceResigns: false },
      ...{ gauges: { pending: 0, dead: 0 }, counters: { accepted: 1, handled: 1 }, oldestPendingAt: null },
    });
    const history = await server.ask({ url: "/inspector/api/history", headers });
    expect(history.json()).toMatchObject({ samples: [{ at: clock.now(), accepted: 1, handled: 1 }] });
  });
});

describe("what an open page asks for every 2 s", () => {
  const headers = { [RIGHT]: "read" };

  it("reads the inbox once for each request, and never without one", async () => {
    const { server, receiver, clock } = await inspected();
    let reads = 0;
    const stats = receiver.inbox.stats.bind(receiver.inbox);
    receiver.inbox.stats = () => {
      reads += 1;
      return stats();
    };
    await clock.advance(60_000);
    expect(reads).toBe(0);
    expect(await server.ask({ url: OVERVIEW, headers })).toMatchObject({ status: 200 });
    await clock.advance(20 * 60_000);
    expect(reads).toBe(1);
  });

  it("reports itself to viewers who may look, and only to them", async () => {
    const { server } = await inspected();
    expect(await server.ask({ url: OVERVIEW })).toMatchObject({ status: 401 });
    expect((await server.ask({ url: OVERVIEW, headers })).json()).toMatchObject({ changed: expect.any(Number) });
  });

  it.each([
    ["the inbox cannot be read", "store_unavailable"],
    ["authorize() throws", "authorize_failed"],
    ["authorize() gives no right that there is", "authorize_mistake"],
  ])("fills no log while %s", async (_what, code) => {
    let grant: () => never = () => "read" as never;
    const { server, store, log, clock } = await inspected({ authorize: () => grant() });
    if (code === "store_unavailable") store.faults.reads = new StoreError("store_unavailable", "It is away.");
    if (code === "authorize_mistake") grant = () => "admin" as never;
    if (code === "authorize_failed")
      grant = () => {
        throw new Error("The session store is away.");
      };
    for (let second = 0; second < 90; second += 2) {
      expect((await server.ask({ url: OVERVIEW })).status).toBeGreaterThan(400);
      await clock.advance(2_000);
    }
    const own = log.filter(({ message }) => /^(The inspector|authorize\(\)) /.test(message));
    expect(own.map(({ fields }) => fields.code)).toEqual([code, code]);
    store.faults.reads = null;
    grant = () => "read" as never;
    expect(await server.ask({ url: OVERVIEW })).toMatchObject({ status: 200 });
  });
});

describe("an answer of the inspector", () => {
  it("carries every header of security, whatever it says", async () => {
    const { server, store, inspector, clock } = await inspected();
    const headers = { [RIGHT]: "read" };
    const asked = {
      page: await server.ask({ headers }),
      head: await server.ask({ headers, method: "HEAD" }),
      file: await server.ask({ headers, url: "/inspector/assets/main.js" }),
      data: await server.ask({ headers, url: OVERVIEW }),
      nothing: await server.ask({ headers, url: "/inspector/nothing" }),
      elsewhere: await server.ask({ headers, url: "/elsewhere" }),
      host: await server.ask({ headers: { ...headers, host: "x.test" } }),
      method: await server.ask({ headers, method: "DELETE" }),
      unauthorizedPage: await server.ask(),
      unauthorizedData: await server.ask({ url: OVERVIEW }),
      unavailable: await (async () => {
        await clock.advance(1_000);
        store.faults.reads = new StoreError("store_unavailable", "It is away.");
        return server.ask({ headers, url: OVERVIEW });
      })(),
      broken: await (async () => {
        store.faults.reads = new Error("A bug.");
        return server.ask({ headers, url: OVERVIEW });
      })(),
      closed: await (async () => {
        inspector.close();
        return server.ask({ headers, url: OVERVIEW });
      })(),
    };
    expect(Object.fromEntries(Object.entries(asked).map(([name, { status }]) => [name, status]))).toEqual({
      ...{ page: 200, head: 200, file: 200, data: 200, nothing: 404, elsewhere: 404, host: 403, method: 405 },
      ...{ unauthorizedPage: 401, unauthorizedData: 401, unavailable: 503, broken: 500, closed: 503 },
    });
    for (const [name, answer] of Object.entries(asked)) {
      expect(answer.headers, name).toMatchObject(SECURITY_HEADERS);
      expect(answer.headers["cache-control"], name).toBe(name === "file" ? "no-cache" : "no-store");
      expect(answer.headers, name).not.toHaveProperty("access-control-allow-origin");
      if (name !== "head") expect(answer.headers["content-length"], name).toBe(`${Buffer.byteLength(answer.body)}`);
    }
  });

  it("to somebody without a right is a short text for a page, and JSON for data", async () => {
    const { server } = await inspected();
    const page = await server.ask();
    expect(page).toMatchObject({ status: 401, headers: { "content-type": "text/plain; charset=utf-8" } });
    expect(page.body.length).toBeLessThan(100);
    expect(await server.ask({ url: "/inspector/assets/main.js" })).toMatchObject({ status: 401 });
    for (const url of [OVERVIEW, "/inspector/api/nothing", "/inspector/nothing"])
      expect((await server.ask({ url })).json()).toMatchObject({ error: "unauthorized" });
  });

  it("tells no detail of what failed, and the log its code and what our own error says", async () => {
    const { server, store, log } = await inspected();
    const ask = () => server.ask({ url: OVERVIEW, headers: { [RIGHT]: "read" } });
    store.faults.reads = new StoreError("store_full", "No space at /data/inbox.db.");
    const unavailable = await ask();
    expect(unavailable).toMatchObject({ status: 503 });
    expect(unavailable.json()).toMatchObject({ error: "unavailable" });
    store.faults.reads = Object.assign(new TypeError("Cannot read +15550100002"), { code: "ERR_ODD" });
    const broken = await ask();
    expect(broken).toMatchObject({ status: 500 });
    expect(broken.json()).toMatchObject({ error: "internal_error" });
    expect(unavailable.body + broken.body).not.toMatch(/data|5550100002|ERR_ODD/);
    const own = log.filter(({ message }) => message.startsWith("The inspector"));
    expect(own).toMatchObject([
      {
        level: "warn",
        fields: { code: "store_full" },
        message: expect.stringContaining("No space at /data/inbox.db."),
      },
      { level: "error", fields: { code: "ERR_ODD" } },
    ]);
    expect(JSON.stringify(log)).not.toContain("5550100002");
  });

  it("logs what is wrong with the store, and does not send it to the client", async () => {
    const store = sqliteStore(newInboxFile(), { onOpen: (async () => {}) as never });
    const { server, log } = await inspectedOn(makeBench(store));
    const answer = await server.ask({ url: OVERVIEW, headers: { [RIGHT]: "read" } });
    expect([answer.status, answer.json()]).toMatchObject([500, { error: "internal_error" }]);
    expect(answer.body).not.toContain("onOpen");
    const told = expect.stringMatching(
      /^The inspector failed to answer a request\. Option "onOpen" is async or returned a promise/,
    );
    expect(log).toContainEqual({ level: "error", fields: { code: "invalid_option" }, message: told });
  });

  it("to a filter that is none says which", async () => {
    const { server } = await inspected();
    const headers = { ...POST_HEADERS, [RIGHT]: "read" };
    const answer = await server.ask({
      method: "POST",
      url: "/inspector/api/events",
      headers,
      body: '{"limit":100000}',
    });
    expect(answer).toMatchObject({ status: 400 });
    expect(answer.json()).toMatchObject({ error: "invalid_request", message: expect.stringContaining('"limit"') });
  });
});
