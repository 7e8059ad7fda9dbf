/** The route that a cron calls. */
import { describe, expect, it } from "vitest";
import { drainRoute } from "../../adapters/next.ts";
import { createReceiver, SetupError, StoreError } from "../../src/index.ts";
import { memoryStore } from "../../src/stores/memory.ts";
import { sqliteBench } from "../receiver/bench.ts";
import { inbound } from "../receiver/events.ts";
import { memoryReceiver, recordingLogger, SECRET } from "./receivers.ts";

const secret = "cron_secret_0123456789";
const bearer = (text: string) => new Request("http://a.example/cron", { headers: { authorization: `Bearer ${text}` } });

describe("drainRoute()", () => {
  it("drains within its limits, for GET and POST", async () => {
    const { receiver } = memoryReceiver();
    const limits: unknown[] = [];
    const drain = receiver.drain.bind(receiver);
    receiver.drain = (options) => {
      limits.push(options);
      return drain(options);
    };
    const { GET, POST } = drainRoute(receiver, { secret, budgetMs: 5_000 });
    for (const route of [GET, POST]) {
      const answer = await route(bearer(secret));
      expect([answer.status, await answer.json()]).toEqual([200, { outcome: "drained", claimed: 0, complete: true }]);
    }
    expect(limits).toEqual([{ budgetMs: 5_000 }, { budgetMs: 5_000 }]);
  });

  it.each([
    ["no header", new Request("http://a.example/cron")],
    ["another secret", bearer("cron_secret_0123456780")],
    ["a longer one", bearer(`${secret}0`)],
    ["a beginning", bearer(secret.slice(0, -1))],
    ["another scheme", new Request("http://a.example/cron", { headers: { authorization: `Basic ${secret}` } })],
    ["the secret in the query", new Request(`http://a.example/cron?secret=${secret}`)],
  ])("answers 401 to %s, and does not drain", async (_what, request) => {
    const { receiver } = memoryReceiver();
    let drained = false;
    receiver.drain = () => {
      drained = true;
      return Promise.reject(new Error());
    };
    const answer = await drainRoute(receiver, { secret }).GET(request);
    expect([answer.status, await answer.json(), drained]).toEqual([401, { error: "unauthorized" }, false]);
    expect(answer.headers.get("www-authenticate")).toBe("Bearer");
  });

  it("drains one at a time: a second call is told so, and a later one drains again", async () => {
    const { receiver } = memoryReceiver();
    const waiting: (() => void)[] = [];
    receiver.drain = () => new Promise((resolve) => waiting.push(() => resolve({ claimed: 1, complete: true })));
    const { GET, POST } = drainRoute(receiver, { secret });
    const first = GET(bearer(secret));
    const second = await POST(bearer(secret));
    expect([second.status, await second.json()]).toEqual([202, { outcome: "busy" }]);
    waiting[0]?.();
    expect((await first).status).toBe(200);
    const third = GET(bearer(secret));
    waiting[1]?.();
    expect((await third).status).toBe(200);
  });

  it("answers 503 when the drain fails, and tries again at the next call", async () => {
    const { receiver, lines } = memoryReceiver();
    const drain = receiver.drain.bind(receiver);
    receiver.drain = () => Promise.reject(new Error("disk /var/inbox.db"));
    const { GET } = drainRoute(receiver, { secret });
    const answer = await GET(bearer(secret));
    expect([answer.status, await answer.json()]).toEqual([503, { error: "unavailable" }]);
    expect(lines).toEqual([
      {
        level: "error",
        fields: { reason: "Error", at: expect.arrayContaining([expect.stringMatching(/drain\.test\.ts:\d+/)]) },
        message: "drainRoute could not drain; accepted events wait for the next call.",
      },
    ]);
    receiver.drain = drain;
    expect((await GET(bearer(secret))).status).toBe(200);
  });

  it("answers 503 while the store fails in the midst of a drain, and handles what waited at the first call after it", async () => {
    const { receiver, deliver, store, log } = sqliteBench();
    const handled: string[] = [];
    receiver.onAny((event) => void handled.push(event.eventType));
    await deliver(inbound());
    const { GET } = drainRoute(receiver, { secret });
    store.faults.step = new StoreError("store_unavailable", "The server is away.");
    const answer = await GET(bearer(secret));
    expect([answer.status, await answer.json()]).toEqual([503, { error: "unavailable" }]);
    expect(log.at(-1)).toMatchObject({
      ...{
        level: "error",
        fields: { code: "store_unavailable" },
        message: expect.stringContaining("The server is away."),
      },
    });
    store.faults.clear();
    const next = await GET(bearer(secret));
    expect([next.status, await next.json()]).toEqual([200, { outcome: "drained", claimed: 1, complete: true }]);
    expect(handled).toEqual(["message.inbound"]);
  });

  it("answers 500 to a mistake that no later call mends, and logs what it is", async () => {
    const { logger, lines } = recordingLogger();
    const receiver = createReceiver({ secrets: SECRET, store: memoryStore({ volatile: true }), logger });
    const answer = await drainRoute(receiver, { secret }).GET(bearer(secret));
    expect([answer.status, await answer.json()]).toEqual([500, { error: "misconfigured" }]);
    expect(lines).toMatchObject([{ level: "error", fields: { code: "no_handlers" } }]);
    expect(lines[0]?.message).toContain("handler");
  });

  it.each([{ budgetMs: 0 }, { budgetMs: 86_400_001 }, { limit: 0.5 }, { limit: "10" as unknown as number }])(
    "refuses %j at construction",
    (limits) => {
      const { receiver } = memoryReceiver();
      expect(() => drainRoute(receiver, { secret, ...limits })).toThrow(`Option "${Object.keys(limits)[0]}"`);
    },
  );

  it("calls a function for its secret at the first request, and again only after it failed", async () => {
    const { receiver, lines } = memoryReceiver();
    const results = [undefined, new Error("vault of secret-text"), secret, "never asked for"];
    const read = async () => {
      const result = results.shift();
      if (result instanceof Error) throw result;
      return result;
    };
    const { GET } = drainRoute(receiver, { secret: read });
    expect(results).toHaveLength(4);
    const statuses = [];
    for (const text of [secret, secret, "a guess of it ...", secret]) statuses.push((await GET(bearer(text))).status);
    expect([statuses, results]).toEqual([[500, 503, 401, 200], ["never asked for"]]);
    expect(lines.filter(({ level }) => level === "error")).toEqual([
      {
        level: "error",
        fields: { code: "invalid_secret" },
        message: expect.stringContaining("could not read its secret"),
      },
    ]);
  });

  it("logs once that its secret cannot be read, however many ask", async () => {
    const { receiver, lines } = memoryReceiver();
    let fails = true;
    const { GET } = drainRoute(receiver, {
      secret: () => {
        if (fails) throw new Error("vault of secret-text");
        return secret;
      },
    });
    for (const text of ["a", "b", "c"]) expect((await GET(bearer(text))).status).toBe(503);
    expect(JSON.stringify(lines)).not.toContain("secret-text");
    expect(lines).toHaveLength(1);
    fails = false;
    expect((await GET(bearer(secret))).status).toBe(200);
  });

  it("takes a secret of 16 bytes, and lets nobody keep its answers", async () => {
    const { receiver } = memoryReceiver();
    const shortest = "sixteen bytes !!";
    const answer = await drainRoute(receiver, { secret: shortest }).GET(bearer(shortest));
    expect([answer.status, answer.headers.get("cache-control")]).toEqual([200, "no-store"]);
  });

  it.each([
    ...[undefined, "", "    ".repeat(8), "fifteen bytes !", "read_with_its_line_break\n"],
    // None of these arrives as it is: no header can carry them.
    ...["schlüssel_0123456789", "cron_secret\n0123456789", "cron_secret\x000123456789", "cron_secret\x7f0123456789"],
  ])("refuses the secret %j at construction", (wrong) => {
    const { receiver } = memoryReceiver();
    const make = () => drainRoute(receiver, { secret: wrong });
    expect(make).toThrow(SetupError);
    expect(make).toThrow(
      expect.objectContaining({
        code: "invalid_secret",
        message: expect.stringContaining('"secret" of drainRoute() must be a text of at least 16 bytes'),
      }),
    );
  });
});
