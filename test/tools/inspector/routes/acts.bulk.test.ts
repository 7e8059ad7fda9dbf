/** `POST api/bulk`: its lines, one at a time, and what ends it. */
import { describe, expect, it, onTestFinished } from "vitest";
import type { Access, BulkLine } from "../../../../src/tools/inspector/index.ts";
import { Samples } from "../../../../src/tools/inspector/look.ts";
import type { ApiCall } from "../../../../src/tools/inspector/route.ts";
import { bulkRoute } from "../../../../src/tools/inspector/routes/acts.ts";
import { createFakeClock } from "../../../../src/tools/testing/fake-clock.ts";
import { idleTurns, until } from "../../../receiver/bench.ts";
import { BulkScene } from "../../../receiver/bulk-scene.ts";

/** Calls of one inspector's route, on a fake clock. */
async function openRoute(dead: number) {
  const clock = createFakeClock();
  const scene = new BulkScene(clock);
  await scene.dead(dead);
  const { inbox } = scene;
  const { logger, log } = scene.bench;
  const call = async (order: object, signal = new AbortController().signal) => {
    const query = new URLSearchParams();
    const readJson = async () => ({ ok: true, value: order }) as const;
    const access = "act" as const;
    const facts: ApiCall = {
      inbox,
      samples: new Samples(clock),
      clock,
      logger,
      access,
      by: "ann",
      id: 0,
      query,
      readJson,
      signal,
      reauthorize,
    };
    const { status, body } = await bulkRoute.run(facts);
    return { status, body };
  };
  let right: Access | false | Promise<never> = "act";
  const reauthorize = async () => right;
  const allow = (now: Access | false | Promise<never>) => {
    right = now;
  };
  const ended = () => log.filter(({ message }) => message.startsWith("Bulk work")).map(({ fields }) => fields);
  return { scene, clock, call, ended, allow };
}

type Body = Awaited<ReturnType<typeof bulkRoute.run>>["body"];

/** Reads on in the background. */
function read(body: Body) {
  if (typeof body === "string" || body instanceof Uint8Array) throw new Error("The body is not a stream.");
  const lines: BulkLine[] = [];
  const over = (async () => {
    for await (const line of body) {
      expect(line.endsWith("\n")).toBe(true);
      if (line !== "\n") lines.push(JSON.parse(line) as BulkLine);
    }
  })();
  return { lines, over, iterator: body[Symbol.asyncIterator]() };
}

const SLOWLY = { act: "replay", query: {}, dryRun: false, ratePerSecond: 10 } as const;

describe("POST api/bulk", () => {
  it("tells its progress every 250 ms, and then the end", async () => {
    const { scene, clock, call, ended } = await openRoute(20);
    scene.mended = true;
    const { lines, over } = read((await call(SLOWLY)).body);
    for (let n = 0; n < 30; n++) await clock.advance(100);
    await over;
    const progress = lines.slice(0, -1);
    expect(progress.every(({ kind }) => kind === "progress")).toBe(true);
    expect(progress.length).toBeGreaterThan(4);
    expect(progress.length).toBeLessThan(9);
    expect(progress[0]).toMatchObject({ total: 20 });
    expect(lines.at(-1)).toMatchObject({ kind: "done", dryRun: false, counts: { replayed: 20, superseded: 0 } });
    expect(ended()).toMatchObject([{ act: "replay", by: "ann", dryRun: false, counts: { replayed: 20 }, end: "done" }]);
  });

  it.each([
    ["discard_quarantined", "discarded"],
    ["replay_quarantined", "invalid_event"],
  ])("leaves out what was quarantined since the dry run: %s", async (act, end) => {
    const { scene, call } = await openRoute(0);
    await scene.bench.deliver("one");
    const dry = read((await call({ act, dryRun: true })).body);
    await dry.over;
    const [{ id: newest } = { id: 0 }] = (await scene.inbox.findQuarantined({ limit: 1 })).items;
    expect(dry.lines).toMatchObject([{ kind: "done", dryRun: true, upTo: newest, counts: { [end]: 1 } }]);
    await scene.bench.deliver("another, which nobody has seen");
    const { lines, over } = read((await call({ act, dryRun: false, upTo: newest })).body);
    await over;
    expect(lines.at(-1)).toMatchObject({ kind: "done", dryRun: false, counts: { [end]: 1 } });
    expect((await scene.inbox.findQuarantined({ states: ["held"] })).items[0]).toMatchObject({ id: newest + 1 });
    expect((await call({ act, dryRun: true, upTo: 0 })).status).toBe(400);
  });

  it("sends an empty line after 15 s without another: a proxy would end the answer, and with it the work", async () => {
    const { scene, clock, call } = await openRoute(2);
    scene.mended = true;
    const { body } = await call({ ...SLOWLY, ratePerSecond: 0.02 });
    const chunks: string[] = [];
    const over = (async () => {
      for await (const chunk of body as AsyncIterable<string>) chunks.push(chunk);
    })();
    await idleTurns();
    for (let n = 0; n < 50; n++) await clock.advance(1_000);
    await over;
    expect(chunks).toEqual(["\n", "\n", "\n", ...chunks.slice(3)]);
    expect(chunks.slice(3).map((line) => (JSON.parse(line) as BulkLine).kind)).toEqual(["progress", "done"]);
  });

  it.each([
    ["the one who asked is gone", "abort"],
    ["its answer is ended", "return"],
  ])("stops between two acts when %s, and says how far it came", async (_, way) => {
    const { scene, clock, call, ended } = await openRoute(20);
    const gone = new AbortController();
    const { over, iterator } = read((await call(SLOWLY, gone.signal)).body);
    for (let n = 0; n < 5; n++) await clock.advance(100);
    if (way === "abort") gone.abort();
    else await iterator.return?.();
    await over;
    await until(() => ended().length === 1);
    for (let n = 0; n < 20; n++) await clock.advance(100);
    const audited = (await scene.inbox.audit(100)).filter(({ act }) => act === "replay").length;
    expect(audited).toBeGreaterThan(2);
    expect(audited).toBeLessThan(8);
    expect(ended()).toMatchObject([{ end: "aborted", counts: { replayed: audited } }]);
  });

  it.each([false, "read"] as const)("stops within a minute when the right to act is lost (%s)", async (right) => {
    const { scene, clock, call, ended, allow } = await openRoute(10);
    const { lines, over } = read((await call({ ...SLOWLY, ratePerSecond: 0.04 })).body);
    await idleTurns();
    allow("reveal");
    for (let n = 0; n < 60; n++) await clock.advance(1_000);
    expect(ended()).toEqual([]);
    allow(right);
    for (let n = 0; n < 60; n++) await clock.advance(1_000);
    await over;
    expect(lines.at(-1)).toEqual({ kind: "failed", code: "unauthorized" });
    expect(ended()).toMatchObject([{ end: "unauthorized" }]);
    expect((await scene.inbox.audit()).length).toBeLessThan(10);
  });

  it("stops when nobody says within another minute whether there still is a right to act", async () => {
    const { scene, clock, call, ended, allow } = await openRoute(10);
    const { lines, over } = read((await call({ ...SLOWLY, ratePerSecond: 0.04 })).body);
    await idleTurns();
    allow(new Promise<never>(() => {}));
    for (let n = 0; n < 119; n++) await clock.advance(1_000);
    expect(ended()).toEqual([]);
    await clock.advance(1_000);
    await over;
    expect(lines.at(-1)).toEqual({ kind: "failed", code: "unauthorized" });
    expect((await scene.inbox.audit()).length).toBeLessThan(10);
  });

  it("does one at a time, and waits a second for one that is just ending", async () => {
    const { clock, call, ended } = await openRoute(20);
    const gone = new AbortController();
    const first = read((await call(SLOWLY, gone.signal)).body);
    const refused = call({ ...SLOWLY, dryRun: true });
    for (let n = 0; n < 11; n++) await clock.advance(100);
    expect((await refused).status).toBe(409);
    const patient = call({ act: "unblock", dryRun: true });
    await idleTurns();
    gone.abort();
    const { status, body } = await patient;
    expect(status).toBe(200);
    const second = read(body);
    await Promise.all([first.over, second.over]);
    expect(second.lines).toMatchObject([{ kind: "done", counts: { unblocked: 0 } }]);
    expect(ended().map(({ end }) => end)).toEqual(["aborted", "done"]);
  });

  it("says by a code why it could not go on, and lets the next one begin", async () => {
    const { scene, call } = await openRoute(1);
    const { store } = scene.bench;
    const act = store.act;
    store.act = () => Promise.reject(Object.assign(new Error("+15550100002"), { code: "SQLITE_FULL" }));
    onTestFinished(() => {
      store.act = act;
    });
    const failed = read((await call({ ...SLOWLY, ratePerSecond: 1_000 })).body);
    await failed.over;
    expect(failed.lines).toEqual([{ kind: "failed", code: "SQLITE_FULL" }]);
    const dry = read((await call({ ...SLOWLY, dryRun: true })).body);
    await dry.over;
    expect(dry.lines).toMatchObject([{ kind: "done", dryRun: true }]);
  });

  it.each([
    [{}, '"act" must be one of "replay"'],
    [[], '"act" must be one of'],
    [{ act: "erase", dryRun: true }, '"act" must be one of'],
    [{ act: "unblock" }, '"dryRun" must be true or false'],
    [{ act: "unblock", dryRun: "yes" }, '"dryRun" must be true or false'],
    [{ act: "unblock", dryRun: true, query: {} }, "A field is not known."],
    [{ act: "replay", dryRun: true }, '"query" must be a JSON object'],
    [{ act: "replay", dryRun: true, query: [] }, '"query" must be a JSON object'],
    [{ act: "replay", dryRun: true, query: { states: ["pending"] } }, 'In "query": "states" must be a list'],
    [{ act: "discard", dryRun: true, query: { states: ["done"] } }, 'In "query": "states" must be a list'],
    [{ act: "discard", dryRun: true, query: { limit: 1 } }, 'In "query": A field is not known.'],
    [{ act: "discard", dryRun: true, query: {}, ratePerSecond: 0 }, '"ratePerSecond" must be a number from 0.01'],
    [{ act: "discard", dryRun: true, query: {}, skipSuperseded: true }, "A field is not known."],
  ])("refuses %j", async (order, message) => {
    const { call, ended } = await openRoute(0);
    const { status, body } = await call(order);
    expect([status, JSON.parse(`${body}`)]).toEqual([
      400,
      { error: "invalid_request", message: expect.stringContaining(message) },
    ]);
    expect(ended()).toEqual([]);
  });
});
