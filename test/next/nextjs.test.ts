/** The Next.js example, installed, built and started for real: both routers, one inbox. */
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { duplicated, fixtures, lifecycle, seededRandom, shuffled } from "../../src/tools/testing/index.ts";
import { CRON_SECRET, PREVIOUS_SECRET } from "./application.ts";
import { SqliteApplication } from "./sqlite-application.ts";

const ROUTES = ["/webhooks", "/api/webhooks-pages"] as const;
const application = new SqliteApplication();
const now = Date.now();
let buildOutput = "";

beforeAll(async () => {
  await application.install();
  buildOutput = await application.build();
}, 900_000);
afterEach(() => application.killAll());
afterAll(() => application.dispose());

const sequencesOf = (messageId: string) =>
  application
    .handled()
    .filter((row) => row.message_id === messageId)
    .map(({ sequence }) => sequence);

describe("examples/nextjs", () => {
  it("builds without secrets, with its routes on the server", () => {
    for (const route of ["/api/drain", "/api/echo", ...ROUTES]) expect(buildOutput).toContain(`ƒ ${route}`);
  });

  it("handles shuffled and repeated deliveries of both routers once, in order, in one inbox (RCV-6, RCV-7)", async () => {
    const server = await application.start("start", {
      WEBHOOK_PREVIOUS_SECRET: PREVIOUS_SECRET,
      WEBHOOK_PREVIOUS_VALID_UNTIL: String(now + 3_600_000),
    });
    const random = seededRandom(1);
    const ids = Array.from({ length: 20 }, (_, index) => `msg_${index}`);
    const events = ids.flatMap((messageId, index) =>
      lifecycle({ messageId, occurredAt: now, ending: index % 5 === 0 ? "failed" : "delivery" }),
    );
    const deliveries = duplicated(shuffled(events, random), random);
    const answers = await Promise.all(
      deliveries.map((event, index) =>
        server.deliver(index % 3 === 0 ? ROUTES[1] : ROUTES[0], event, index % 4 === 0 ? PREVIOUS_SECRET : undefined),
      ),
    );
    expect(answers.map(({ status }) => status)).toEqual(deliveries.map(() => 200));
    expect((await server.deliver(ROUTES[0], fixtures.inbound({ occurredAt: now }))).status).toBe(200);
    expect((await server.deliver(ROUTES[1], fixtures.unknown({ occurredAt: now }))).status).toBe(200);
    await expect.poll(() => application.handled().length, { timeout: 10_000 }).toBe(events.length + 2);
    for (const id of ids) expect(sequencesOf(id)).toEqual([1, 2, 3]);
    expect(sequencesOf("msg_in_000001")).toEqual([0]);
    // A line is printed before its row is committed, and may be read after it.
    await expect.poll(() => server.printed().length, { timeout: 10_000 }).toBe(events.length + 2);
    // The bundles of both routers and of the worker share one open inbox.
    expect(application.query("select * from oncehook_instance")).toHaveLength(1);
    expect(await server.end()).toBe(0);
  });

  it("refuses what it has to on both routers (RCV-1, RCV-2)", async () => {
    const server = await application.start("start");
    const event = fixtures.queued({ occurredAt: now, messageId: "msg_refused" });
    for (const route of ROUTES) {
      const forged = await server.deliver(route, event, "a-secret-that-nobody-installed-xx");
      expect([forged.status, await forged.json()]).toEqual([401, { error: "unauthorized" }]);
      expect((await fetch(`${server.url}${route}`, { method: "POST", body: "{}" })).status).toBe(401);
      const got = await fetch(`${server.url}${route}`);
      expect([got.status, got.headers.get("allow")]).toEqual([405, "POST, PUT"]);
      const large = await server.deliver(route, { ...event, padding: "x".repeat(300_000) });
      expect([large.status, await large.json()]).toEqual([413, { error: "body_too_large" }]);
      const quarantined = await server.deliver(route, `not json on ${route}`);
      expect([quarantined.status, await quarantined.json()]).toEqual([200, { outcome: "quarantined" }]);
    }
    expect(sequencesOf("msg_refused")).toEqual([]);
    expect(await server.end()).toBe(0);
  });

  it("keeps an ordinary JSON route, and a drain route that needs its secret", async () => {
    const server = await application.start("start");
    const echoed = await fetch(`${server.url}/api/echo`, {
      method: "POST",
      body: JSON.stringify({ hello: ["wörld"] }),
    });
    expect([echoed.status, await echoed.json()]).toEqual([200, { hello: ["wörld"] }]);
    const drain = (authorization?: string) =>
      fetch(`${server.url}/api/drain`, authorization === undefined ? {} : { headers: { authorization } });
    expect((await drain()).status).toBe(401);
    expect((await drain("Bearer a-guess-of-the-secret-xxxxxxxxxx")).status).toBe(401);
    const drained = await drain(`Bearer ${CRON_SECRET}`);
    expect([drained.status, await drained.json()]).toMatchObject([200, { outcome: "drained", complete: true }]);
    expect(await server.end()).toBe(0);
  });

  it("on SIGTERM handles what it accepted, and ends with 0", async () => {
    const server = await application.start("start");
    const events = shuffled(
      Array.from({ length: 10 }, (_, index) => lifecycle({ messageId: `msg_term_${index}`, occurredAt: now })).flat(),
      seededRandom(2),
    );
    const answers = await Promise.all(events.map((event) => server.deliver(ROUTES[0], event)));
    expect(answers.map(({ status }) => status)).toEqual(events.map(() => 200));
    expect(await server.end()).toBe(0);
    for (let index = 0; index < 10; index++) expect(sequencesOf(`msg_term_${index}`)).toEqual([1, 2, 3]);
    expect(JSON.parse(readFileSync(join(application.folder, "package.json"), "utf8")).scripts.start).toBe(
      "NEXT_MANUAL_SIG_HANDLE=1 exec next start",
    );
  });

  it("does not start without its secret, and says which", async () => {
    const server = application.launch("start", { INBOX_PATH: application.inboxPath, CRON_SECRET });
    expect(await server.exited()).not.toBe(0);
    expect(server.lines.join("\n")).toContain(
      'Option "secrets.current" is an empty text: look whether its environment variable is set',
    );
  });

  it("keeps one inbox and one worker over reloads in development", async () => {
    const server = await application.start("dev");
    const deliver = (id: string) => server.deliver(ROUTES[0], fixtures.queued({ messageId: id, occurredAt: now }));
    expect((await deliver("msg_dev_1")).status).toBe(200);
    await expect.poll(() => sequencesOf("msg_dev_1"), { timeout: 20_000 }).toEqual([1]);
    const file = join(application.folder, "lib/receiver.ts");
    for (const version of [1, 2]) {
      // Before `nextWebhook` takes the handlers over, as the example does.
      const registration = `receiver.onAny(() => console.log("reloaded ${version}"));`;
      const [head, tail] = readFileSync(file, "utf8").split("receiver.onLate(print);");
      writeFileSync(file, `${head}${registration}\nreceiver.onLate(print);${tail}`);
      let attempt = 0;
      // The reload takes its time: deliveries go on until one meets the new handler.
      await expect
        .poll(
          async () => {
            expect((await deliver(`msg_dev_${version}_${++attempt}`)).status).toBe(200);
            return server.lines.includes(`reloaded ${version}`);
          },
          { timeout: 30_000, interval: 300 },
        )
        .toBe(true);
    }
    expect(
      (await server.deliver(ROUTES[1], fixtures.queued({ messageId: "msg_dev_pages", occurredAt: now }))).status,
    ).toBe(200);
    await expect.poll(() => sequencesOf("msg_dev_pages"), { timeout: 20_000 }).toEqual([1]);
    expect(application.query("select * from oncehook_instance")).toHaveLength(1);
    const twice = "select message_id from handled group by message_id, sequence, event_type having count(*) > 1";
    expect(application.query(`${twice} and message_id is not null`)).toEqual([]);
  });
});
