/** Alerts of a receiver: when they begin and end, from one process of all, repeated with their id until they are taken. */
import { createServer, type IncomingHttpHeaders } from "node:http";
import { describe, expect, it, onTestFinished } from "vitest";
import {
  type Alert,
  type AlertOptions,
  createReceiver,
  type Keyring,
  PermanentError,
  verifySignature,
} from "../../src/index.ts";
import { sleep } from "../../src/internal/clock.ts";
import { github, slack } from "../../src/sources/index.ts";
import { memoryStore } from "../../src/stores/memory.ts";
import { createFakeClock } from "../../src/tools/testing/fake-clock.ts";
import { listenOnLoopback } from "../support/loopback.ts";
import { type Bench, deferred, HOUR, MINUTE, memoryBench, newInboxFile, SECRET, sqliteBench, until } from "./bench.ts";
import { inbound } from "./events.ts";

const ALERT_SECRET = "the-secret-of-alerts-32-bytes-ok";

const SECOND = 1_000;
const LOOK = 10 * SECOND;

/** A destination that keeps what it takes, and refuses while `isDown`. */
function destination() {
  const tried: Alert[] = [];
  const state = { isDown: false };
  const to = (alert: Alert) => {
    tried.push(alert);
    if (state.isDown) throw new TypeError("https://alerts.example.com/T0K3N is down");
  };
  return { tried, state, to, said: () => tried.map(({ condition, status }) => `${condition} ${status}`) };
}

function failing() {
  throw new PermanentError("no");
}

/** A started receiver whose handlers fail, and that reports its dead letters. */
async function deadLetters({ to, when = { deadLetters: 1 } }: Pick<AlertOptions, "to"> & Partial<AlertOptions>) {
  const bench = sqliteBench({ alerts: { to, when } });
  await bench.receiver.onAny(failing).start();
  const fail = async (messageId: string) => {
    await bench.deliver(inbound({ messageId }));
    await until(async () => (await bench.receiver.inbox.stats()).gauges.dead > 0);
  };
  const discard = async () => {
    const { items } = await bench.receiver.inbox.find({ states: ["dead"] });
    for (const { id } of items) await bench.receiver.inbox.discard(id, { by: "test" });
  };
  return { ...bench, fail, discard };
}

describe("alerts", () => {
  it("sends one message when a condition begins and one when it ends", async () => {
    const { to, tried } = destination();
    const { clock, fail, discard } = await deadLetters({ to });
    await clock.advance(5 * MINUTE);
    expect(tried).toEqual([]);
    await fail("in_1");
    const since = clock.now() + LOOK;
    await clock.advance(LOOK);
    await fail("in_2");
    await clock.advance(5 * MINUTE);
    expect(tried).toMatchObject([
      { status: "began", condition: "deadLetters", receiver: "default", value: 1, limit: 1, at: since, since },
    ]);
    await discard();
    await clock.advance(MINUTE);
    expect(tried).toHaveLength(1);
    await clock.advance(LOOK);
    expect(tried.slice(1)).toMatchObject([{ status: "ended", value: 0, since, episode: tried[0]?.episode }]);
    expect(tried.map(({ id }) => id)).toEqual([`${tried[0]?.episode}:began`, `${tried[0]?.episode}:ended`]);
    await clock.advance(HOUR);
    expect(tried).toHaveLength(2);
  });

  it("comes from one process of all, with the same id from another if the first fails", async () => {
    const clock = createFakeClock();
    const file = newInboxFile();
    const one = destination();
    const other = destination();
    const benches = [one, other].map(({ to }) =>
      sqliteBench({ clock, alerts: { to, when: { deadLetters: 1 } } }, file),
    );
    for (const { receiver } of benches) await receiver.onAny(failing).start();
    const [first] = benches;
    await first?.deliver(inbound());
    await until(async () => (await first?.receiver.inbox.stats())?.gauges.dead === 1);
    one.state.isDown = true;
    other.state.isDown = true;
    await clock.advance(2 * LOOK);
    expect(one.tried.length + other.tried.length).toBe(2);
    one.state.isDown = false;
    other.state.isDown = false;
    await clock.advance(HOUR);
    const all = [...one.tried, ...other.tried];
    expect(all).toHaveLength(3);
    expect(new Set(all.map((alert) => JSON.stringify(alert))).size).toBe(1);
  });

  it("repeats a failed message as it was, with growing waits, and logs each failure without the address", async () => {
    const { to, tried, state } = destination();
    const { clock, fail, discard, log } = await deadLetters({ to });
    state.isDown = true;
    await fail("in_1");
    await clock.advance(LOOK);
    await discard();
    await clock.advance(HOUR);
    const failures = log.filter(({ fields }) => fields.code === "alert_not_sent");
    expect(failures).toHaveLength(tried.length);
    expect(failures[0]).toMatchObject({
      level: "warn",
      fields: { to: "function", condition: "deadLetters", reason: "TypeError" },
    });
    expect(JSON.stringify(log)).not.toContain("T0K3N");
    expect(tried.length).toBeGreaterThan(8);
    expect(tried.length).toBeLessThan(15);
    expect(new Set(tried.map((alert) => JSON.stringify(alert))).size).toBe(1);
    state.isDown = false;
    await clock.advance(10 * MINUTE + LOOK);
    expect(tried.slice(-2).map(({ status }) => status)).toEqual(["began", "ended"]);
  });

  it("counts a call that takes longer than 10 s as failed", async () => {
    const { clock, fail, log } = await deadLetters({ to: () => new Promise(() => {}) });
    await fail("in_1");
    await clock.advance(LOOK + 9 * SECOND);
    expect(log.filter(({ fields }) => fields.code === "alert_not_sent")).toEqual([]);
    await clock.advance(SECOND);
    expect(log.map(({ fields }) => fields).filter(({ code }) => code === "alert_not_sent")).toMatchObject([
      { reason: "timeout" },
    ]);
  });

  it("goes on after a store that failed", async () => {
    const { to, tried } = destination();
    const { clock, fail, store, codes } = await deadLetters({ to });
    await fail("in_1");
    store.faults.reads = new Error("down");
    await clock.advance(MINUTE);
    expect(tried).toEqual([]);
    expect(codes()).toContain("Error");
    store.faults.reads = null;
    await clock.advance(LOOK);
    expect(tried).toHaveLength(1);
  });

  it("is not begun by a look whose process stood still", async () => {
    const { to, tried } = destination();
    const { clock, fail, discard, store } = await deadLetters({ to });
    await fail("in_1");
    const { stats } = store;
    const gate = deferred();
    store.stats = async () => {
      const read = await stats();
      await gate.promise;
      return read;
    };
    await clock.advance(LOOK);
    store.stats = stats;
    await discard();
    await clock.advance(LOOK + SECOND);
    gate.resolve();
    await clock.advance(HOUR);
    expect(tried).toEqual([]);
  });
});

describe("the conditions", () => {
  it("oldestPendingMs looks at the age of the oldest pending event", async () => {
    const { to, tried, said } = destination();
    const { clock, receiver, deliver } = sqliteBench({ alerts: { to, when: { oldestPendingMs: HOUR } } });
    receiver.onAny(() => {});
    await deliver(inbound());
    await clock.advance(HOUR - LOOK);
    expect(tried).toEqual([]);
    await clock.advance(2 * LOOK);
    expect(tried).toMatchObject([{ limit: HOUR }]);
    expect(tried[0]?.value).toBeGreaterThanOrEqual(HOUR);
    await receiver.start();
    await clock.advance(2 * MINUTE);
    expect(said()).toEqual(["oldestPendingMs began", "oldestPendingMs ended"]);
  });

  it("quarantine looks at bodies that are held", async () => {
    const { to, said } = destination();
    const { clock, receiver, deliver } = sqliteBench({ alerts: { to, when: { quarantine: 2 } } });
    await receiver.onAny(() => {}).start();
    await deliver("not an event");
    await clock.advance(MINUTE);
    expect(said()).toEqual([]);
    await deliver("no event either");
    await clock.advance(LOOK);
    expect(said()).toEqual(["quarantine began"]);
  });

  it("refusedShare looks at the deliveries of all processes in the last 5 minutes, from 20 on", async () => {
    const clock = createFakeClock();
    const file = newInboxFile();
    const { to, tried, said } = destination();
    const options = { clock, alerts: { to, when: { refusedShare: 0.5 } } };
    const benches = [sqliteBench(options, file), sqliteBench(options, file)];
    for (const { receiver } of benches) await receiver.onAny(() => {}).start();
    let count = 0;
    const send = async (good: number, bad: number) => {
      for (let i = 0; i < good; i++) await benches[i % 2]?.deliver(inbound({ messageId: `in_${count++}` }));
      for (let i = 0; i < bad; i++)
        await benches[i % 2]?.deliver(inbound(), { secret: "another-secret-of-32-bytes-or-so" });
    };
    await send(0, 19);
    await clock.advance(2 * LOOK);
    // The first look only takes note of what was counted before it.
    await clock.advance(6 * MINUTE);
    await send(0, 19);
    await clock.advance(2 * LOOK);
    expect(said()).toEqual([]);
    await send(1, 0);
    await clock.advance(2 * LOOK);
    expect(tried).toMatchObject([{ status: "began", value: 0.95, limit: 0.5 }]);
    await send(30, 0);
    await clock.advance(2 * LOOK);
    await clock.advance(MINUTE);
    expect(said()).toEqual(["refusedShare began", "refusedShare ended"]);
  });

  it("workerMissing is noticed by a process that only accepts", async () => {
    const clock = createFakeClock();
    const file = newInboxFile();
    const { to, said } = destination();
    const alerts = { to, when: { workerMissing: 5 * MINUTE } };
    const accepting = sqliteBench({ clock, alerts }, file);
    await accepting.receiver.inbox.stats();
    const working = sqliteBench({ clock }, file);
    await working.receiver.onAny(() => {}).start();
    await clock.advance(HOUR);
    expect(said()).toEqual([]);
    await working.receiver.stop();
    await clock.advance(4 * MINUTE);
    expect(said()).toEqual([]);
    await clock.advance(MINUTE + 2 * LOOK);
    expect(said()).toEqual(["workerMissing began"]);
    await accepting.receiver.onAny(() => {}).drain();
    await clock.advance(2 * MINUTE);
    expect(said()).toEqual(["workerMissing began", "workerMissing ended"]);
  });
});

describe("a drain", () => {
  it("looks once at its end, since its process may do nothing after it", async () => {
    const { to, said } = destination();
    const { receiver, deliver } = sqliteBench({ alerts: { to, when: { deadLetters: 1 } } });
    receiver.onAny(failing);
    await deliver(inbound());
    await receiver.drain();
    expect(said()).toEqual(["deadLetters began"]);
  });

  it("gives a send 2 s, although its budget is used up", async () => {
    const clock = createFakeClock();
    const to = () => sleep(clock, 1_900);
    const { receiver, deliver, log } = sqliteBench({ clock, alerts: { to, when: { deadLetters: 1 } } });
    receiver.onAny(async () => {
      await sleep(clock, 1_500);
      failing();
    });
    await deliver(inbound());
    const drained = receiver.drain({ budgetMs: 1_600 });
    for (let turn = 0; turn < 50; turn++) await clock.advance(100);
    await drained;
    expect((await receiver.inbox.stats()).gauges.dead).toBe(1);
    expect(log.filter(({ fields }) => fields.code === "alert_not_sent")).toEqual([]);
  });

  it("looks every 10 s at most", async () => {
    const { to } = destination();
    const { receiver, store, clock } = memoryBench({ alerts: { to, when: { deadLetters: 1 } } });
    let looks = 0;
    const { stats } = store;
    store.stats = () => {
      looks++;
      return stats();
    };
    receiver.onAny(() => {});
    for (let i = 0; i < 5; i++) await receiver.drain();
    expect(looks).toBe(1);
    await clock.advance(LOOK);
    await receiver.drain();
    // One by the timer, one by the drain.
    expect(looks).toBe(3);
  });
});

describe("stop()", () => {
  it("gives a send 2 s, and leaves the message to another process", async () => {
    const clock = createFakeClock();
    const file = newInboxFile();
    const { to, tried } = destination();
    const first = deferred<Alert>();
    const hanging = (alert: Alert) => {
      first.resolve(alert);
      return new Promise(() => {});
    };
    const one = sqliteBench({ clock, alerts: { to: hanging, when: { deadLetters: 1 } } }, file);
    await one.receiver.onAny(failing).start();
    await one.deliver(inbound());
    await clock.advance(LOOK);
    const alert = await first.promise;
    let stopped = false;
    const stopping = one.receiver.stop().then(() => {
      stopped = true;
    });
    await clock.advance(1_999);
    expect(stopped).toBe(false);
    await clock.advance(1);
    await stopping;
    const other = sqliteBench({ clock, alerts: { to, when: { deadLetters: 1 } } }, file);
    await other.receiver.inbox.stats();
    await clock.advance(MINUTE);
    expect(tried).toEqual([alert]);
  });
});

/** A real server that keeps what it gets, and answers `status`. */
async function server() {
  const got: { headers: IncomingHttpHeaders; body: string; path: string | undefined }[] = [];
  const state = { status: 204 };
  const http = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on("data", (chunk: Buffer) => chunks.push(chunk));
    request.on("end", () => {
      got.push({ headers: request.headers, body: Buffer.concat(chunks).toString(), path: request.url });
      response.writeHead(state.status, { location: "/elsewhere" }).end();
    });
  });
  const url = `http://127.0.0.1:${await listenOnLoopback(http)}/hook/T0K3N`;
  onTestFinished(() => void http.close());
  return { got, state, url };
}

describe("alerts to a URL", () => {
  /** Lets real time pass for the request, and fake time for the looks. */
  async function postedTo(alerts: AlertOptions, isThere: (bench: Pick<Bench<unknown>, "codes">) => boolean) {
    const bench = sqliteBench({ name: "shop & co", alerts });
    await bench.receiver.onAny(failing).start();
    await bench.deliver(inbound());
    await bench.clock.advance(LOOK);
    await expect.poll(() => isThere(bench)).toBe(true);
    return bench;
  }

  it("are JSON, signed so that verifySignature() takes them", async () => {
    const { got, url } = await server();
    const { clock } = await postedTo(
      { to: url, secret: ALERT_SECRET, when: { deadLetters: 1 } },
      () => got.length === 1,
    );
    const [{ headers, body }] = got as [(typeof got)[0]];
    expect(
      verifySignature({ headers, body: Buffer.from(body), secrets: ALERT_SECRET, now: clock.now() }),
    ).toMatchObject({
      ok: true,
    });
    const alert = JSON.parse(body) as Alert;
    expect(alert).toMatchObject({ status: "began", condition: "deadLetters", receiver: "shop & co" });
    expect(headers["idempotency-key"]).toBe(alert.id);
    expect(headers["content-type"]).toBe("application/json");
  });

  it("have the shape of Slack where that is asked for, and need no secret then", async () => {
    const { got, url } = await server();
    await postedTo({ to: new URL(url), format: "slack", when: { deadLetters: 1 } }, () => got.length === 1);
    const { text, blocks } = JSON.parse(got[0]?.body ?? "{}");
    expect(text).toMatch(/^\[began\] shop &amp; co: Dead letters in the inbox: 1 \(limit 1\)\. /);
    expect(blocks).toMatchObject([{ type: "section", text: { text } }, { type: "context" }]);
    expect(got[0]?.headers["x-service-signature"]).toBeUndefined();
  });

  it.each([500, 302])("are sent again after an answer of %s, and the log names the host alone", async (status) => {
    const { got, url, state } = await server();
    state.status = status;
    const bench = await postedTo({ to: url, secret: ALERT_SECRET, when: { deadLetters: 1 } }, () => got.length === 1);
    await expect.poll(() => bench.codes().includes("alert_not_sent")).toBe(true);
    const line = bench.log.find(({ fields }) => fields.code === "alert_not_sent");
    expect(line?.fields).toMatchObject({ to: new URL(url).host, reason: `http_${status}` });
    expect(JSON.stringify(bench.log)).not.toContain("T0K3N");
    state.status = 200;
    await expect
      .poll(async () => {
        await bench.clock.advance(LOOK);
        return got.length;
      })
      .toBe(2);
    expect(got[1]?.body).toBe(got[0]?.body);
    expect(got.map(({ path }) => path)).toEqual(["/hook/T0K3N", "/hook/T0K3N"]);
  });

  it("say the network's code where nobody answers", async () => {
    const alerts = { to: "http://127.0.0.1:1/", secret: ALERT_SECRET, when: { deadLetters: 1 } };
    const bench = await postedTo(alerts, ({ codes }) => codes().includes("alert_not_sent"));
    const line = bench.log.find(({ fields }) => fields.code === "alert_not_sent");
    expect(line?.fields).toMatchObject({
      to: "127.0.0.1:1",
      reason: expect.stringMatching(/^ECONNREFUSED$|^unreachable$/),
    });
  });
});

describe("a mistake in alerts", () => {
  const to = () => {};
  const url = "https://alerts.example.com/hook";
  const when = { deadLetters: 1 };

  it.each<[string, unknown, string]>([
    ["an unknown option", { to, when, limits: {} }, 'alerts has no option "limits".'],
    ["an unknown condition", { to, when: { deadLetter: 1 } }, 'Did you mean "deadLetters"?'],
    ["no limit", { to, when: {} }, 'Option "alerts.when" must have a limit, such as { deadLetters: 1 }'],
    ["no when", { to }, "alerts.when takes an options object."],
    ["a limit of 0", { to, when: { deadLetters: 0 } }, "from 1 to 1000000000 dead letters; it is 0."],
    [
      "a percentage",
      { to, when: { refusedShare: 50 } },
      "must be a number from 0.01 to 1 of all deliveries; it is 50.",
    ],
    ["seconds", { to, when: { workerMissing: 90 } }, "from 60000 to 2592000000 ms; it is 90."],
    ["no destination", { when }, 'Option "alerts.to" must be a function, or a URL'],
    ["a text that is not a URL", { to: "alerts.example.com", when }, 'Option "alerts.to" must be a function, or a URL'],
    ["a file", { to: "file:///alerts", when }, 'Option "alerts.to" must be a function, or a URL'],
    ["a password", { to: "https://a:b@example.com", when }, "without a password"],
    ["a URL without a secret", { to: url, when }, 'Option "alerts.secret" must be a text of at least 16 bytes'],
    ["a short secret", { to: url, when, secret: "short" }, 'Option "alerts.secret" is 5 bytes long'],
    ["a secret for a function", { to, when, secret: SECRET }, 'Option "alerts.secret" is for a URL: leave it out'],
    [
      "the webhook secret",
      { to: url, when, secret: SECRET },
      'Option "alerts.secret" is also a secret of the webhooks that are received',
    ],
    ["a format for a function", { to, when, format: "json" }, 'Option "alerts.format" is for a URL: leave it out'],
    ["an unknown format", { to: url, when, secret: ALERT_SECRET, format: "xml" }, 'must be one of "json", "slack"'],
  ])("reports how %s must be written", (_, alerts, message) => {
    const store = memoryStore({ volatile: true });
    expect(() => createReceiver({ secrets: SECRET, store, alerts: alerts as AlertOptions })).toThrow(message);
  });

  it("takes Slack's address without a secret", () => {
    const store = memoryStore({ volatile: true });
    const slack = { to: "https://hooks.slack.com/services/T/B/x", when };
    expect(() => createReceiver({ secrets: SECRET, store, alerts: slack })).not.toThrow();
  });
});

describe("a secret of alerts that is also one of the webhooks", () => {
  const alerts = { to: "https://alerts.example.com/hook", when: { deadLetters: 1 }, secret: ALERT_SECRET };
  const store = () => memoryStore({ volatile: true });
  const validUntil = Date.now() + HOUR;
  const refused = expect.objectContaining({ code: "invalid_secret", fields: { option: "alerts.secret" } });

  it.each<[string, Keyring]>([
    ["with a line break", `${ALERT_SECRET}\n`],
    ["among those in use", { current: [SECRET, ALERT_SECRET] }],
    ["that was replaced", { current: SECRET, previous: { secret: ALERT_SECRET, validUntil } }],
    ["that comes next", { current: SECRET, next: { secret: ALERT_SECRET, tenant: "apc_1" } }],
    ["of one kind", { inbound: SECRET, delivery: ALERT_SECRET }],
  ])("is refused: %s", (_, secrets) => {
    expect(() => createReceiver({ secrets, store: store(), alerts })).toThrow(refused);
  });

  it("is refused of each source", () => {
    const [ours, theirs] = [github({ secrets: SECRET }), slack({ secrets: { current: SECRET, next: ALERT_SECRET } })];
    expect(() => createReceiver({ sources: { ours, theirs }, store: store(), alerts })).toThrow(refused);
    expect(() => createReceiver({ source: theirs, store: store(), alerts })).toThrow(refused);
    expect(() => createReceiver({ source: ours, store: store(), alerts })).not.toThrow();
  });

  it("is not looked for where secrets are read later", () => {
    let reads = 0;
    const secrets = () => {
      reads++;
      return ALERT_SECRET;
    };
    expect(() => createReceiver({ secrets, store: store(), alerts })).not.toThrow();
    expect(() => createReceiver({ source: github({ secrets }), store: store(), alerts })).not.toThrow();
    expect(reads).toBe(0);
  });
});

describe("without alerts", () => {
  it("nothing is looked at", async () => {
    const { receiver, store, clock } = memoryBench();
    let looks = 0;
    store.stats = () => {
      looks++;
      throw new Error("not to be asked");
    };
    await receiver.onAny(() => {}).start();
    await clock.advance(HOUR);
    await receiver.drain();
    expect(looks).toBe(0);
  });
});
