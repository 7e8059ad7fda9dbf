/** `POST api/events`: what it refuses, and the download. */
import { Readable } from "node:stream";
import fc from "fast-check";
import { expect, it } from "vitest";
import { memoryStore } from "../../../../src/stores/memory.ts";
import type { ApiCall } from "../../../../src/tools/inspector/route.ts";
import { csvLine, eventsRoute } from "../../../../src/tools/inspector/routes/events.ts";
import { outbound } from "../../../receiver/events.ts";
import { sized } from "../../../setup/form.ts";
import { event, turn } from "../../../stores/sqlite-turns.ts";
import { openScene } from "./scene.ts";

const open = () => openScene(memoryStore({ volatile: true }));

it.each([
  [{ states: "dead" }, '"states" must be a list of at most 50'],
  [{ states: ["deadly"] }, 'must be one of "pending", "done", "dead", "late", "discarded"'],
  [{ states: Array(51).fill("dead") }, '"states" must be a list'],
  [{ outcome: "done" }, '"outcome" must be one of "handled", "unhandled", "filtered"'],
  [{ late: 1 }, '"late" must be true or false'],
  [{ lane: 5 }, '"lane" must be a text of 1 to 512 characters'],
  [{ lane: "" }, '"lane" must be a text'],
  [{ tenant: 5 }, '"tenant" must be a text of 1 to 512 characters, or null'],
  [{ peer: "x".repeat(513) }, '"peer" must be a text'],
  [{ peer: "\ud800" }, '"peer" must be a text'],
  [{ peer: null }, '"peer" must be a text'],
  [{ acceptedFrom: "2026" }, '"acceptedFrom" must be a time in epoch milliseconds'],
  [{ acceptedTo: 1.5 }, '"acceptedTo" must be a time'],
  [{ limit: 201 }, '"limit" must be a whole number from 1 to 200'],
  [{ limit: 0 }, '"limit" must be'],
  [{ after: -1 }, '"after" must be the id of a row'],
  [{ order: "up" }, '"order" must be one of "newest", "oldest"'],
  [{ format: "xlsx" }, '"format" must be one of "json", "csv"'],
  [{ tennant: "m" }, 'Did you mean "tenant"?'],
  [{ ["x".repeat(60_000)]: 1 }, "Known: states, outcome"],
  [JSON.parse('{"__proto__":{"limit":1}}'), "A field is not known."],
  [[], "The body must be a JSON object."],
  [null, "The body must be a JSON object."],
])("refuses %j, and says no value back", async (body, message) => {
  const scene = await open();
  const answer = await scene.post("events", body, "read");
  expect([answer.status, answer.json()]).toEqual([
    400,
    { error: "invalid_request", message: expect.stringContaining(message) },
  ]);
  expect(answer.body).not.toMatch(/xxx|deadly/);
});

it.each([
  ["quarantine?state=gone", '"state" must be a list'],
  ["quarantine?limit=x", '"limit" must be a whole number from 1 to 200'],
  ["quarantine?limit=1&limit=2", "Each field of the query may appear only once."],
  ["quarantine?states=held", 'Did you mean "state"?'],
  ["audit?limit=1001", '"limit" must be a whole number from 1 to 1000'],
])("refuses GET api/%s", async (path, message) => {
  const answer = await (await open()).get(path);
  expect([answer.status, answer.json()]).toEqual([
    400,
    { error: "invalid_request", message: expect.stringContaining(message) },
  ]);
});

it("gives quarantined bodies by state, more than one of them", async () => {
  const scene = await open();
  await scene.quarantine("one");
  await scene.quarantine("two");
  await scene.post("quarantine/1/discard");
  const ids = async (query: string) =>
    ((await scene.get(`quarantine?${query}`)).json() as { items: { id: number }[] }).items.map(({ id }) => id);
  expect(await ids("state=held")).toEqual([2]);
  expect(await ids("state=held&state=discarded&limit=1")).toEqual([2]);
  expect(await ids("after=2")).toEqual([1]);
});

it("downloads the events that match as CSV in which nothing is a formula", async () => {
  const scene = await open();
  const ids = ["=cmd()", "+1", "-2", "@x", "\tt", 'a "quoted", one', "plain"];
  for (const messageId of ids) await scene.deliver(outbound("queued", { messageId }));
  const { status, headers, body } = await scene.post("events", { format: "csv", order: "oldest", limit: 1 }, "read");
  expect(status).toBe(200);
  expect(headers).toMatchObject({
    "content-type": "text/csv; charset=utf-8",
    "cache-control": "no-store, no-transform",
    "content-disposition": 'attachment; filename="oncehook-events.csv"',
  });
  const [head, ...rows] = body.trimEnd().split("\r\n");
  expect(head).toMatch(/^id,source,tenant,lane,order,own_id,sequence,type,state/);
  expect(rows.map((row) => row.slice(row.indexOf(",apc_1,") + 7, row.indexOf(",sequence,")))).toEqual([
    "'=cmd()",
    "'+1",
    "'-2",
    "'@x",
    "'\tt",
    '"a ""quoted"", one"',
    "plain",
  ]);
  expect(scene.log.findLast(({ fields }) => "rows" in fields)).toMatchObject({
    level: "info",
    fields: { by: "ann", rows: 7 },
  });
});

it("ends a download after 10,000 rows", { tags: "full" }, async () => {
  const store = memoryStore({ volatile: true });
  const scene = await openScene(store);
  await scene.deliver(outbound("queued"));
  for (let n = 0; n < 41; n++) {
    const accepts = Array.from({ length: 250 }, (_, index) => event(`m ${n} ${index}`));
    await store.step(turn<never>({ accepts }));
  }
  const { body } = await scene.post("events", { format: "csv" }, "read");
  expect(body.split("\r\n")).toHaveLength(1 + 10_000 + 1);
  expect(scene.log.findLast(({ fields }) => "rows" in fields)?.fields).toEqual({
    by: "ann",
    rows: 10_000,
    end: "done",
  });
});

it("logs by a code why a download failed", async () => {
  const store = memoryStore({ volatile: true });
  const scene = await openScene(store);
  for (let n = 0; n < 201; n++) await scene.deliver(outbound("queued", { messageId: `msg_${n}` }));
  const find = store.find.bind(store);
  store.find = async (query) => {
    if (query.after !== undefined) throw Object.assign(new Error("+15550100002"), { code: "SQLITE_IOERR" });
    return find(query);
  };
  const readJson = async () => ({ ok: true, value: { format: "csv" } }) as const;
  const { inbox, logger } = scene.receiver;
  const { body } = await eventsRoute.run({ inbox, logger, by: "ann", readJson } as Partial<ApiCall> as ApiCall);
  await expect(Readable.from(body).toArray()).rejects.toThrow();
  expect(scene.log.slice(-2)).toMatchObject([
    { level: "warn", fields: { code: "SQLITE_IOERR" } },
    { level: "info", fields: { by: "ann", rows: 200, end: "SQLITE_IOERR" } },
  ]);
  expect(JSON.stringify(scene.log)).not.toContain("5550100002");
});

it("logs an act also if it is not known whether it was done", async () => {
  const store = memoryStore({ volatile: true });
  const scene = await openScene(store);
  await scene.settle(outbound("queued"));
  const act = store.act.bind(store);
  store.act = async (...asked) => {
    await act(...asked);
    throw Object.assign(new Error("+15550100002"), { code: "ECONNRESET" });
  };
  expect((await scene.post("events/1/replay")).status).toBe(500);
  const told = scene.log.find(({ fields }) => "act" in fields);
  expect(told).toMatchObject({ level: "warn", fields: { act: "replay", by: "ann", event: 1, code: "ECONNRESET" } });
});

it("writes cells that a spreadsheet reads as they are", () => {
  expect(csvLine([1, true, null, "a\nb", "\rb", "=1,2"])).toBe(`1,true,,"a\nb","'\rb","'=1,2"\r\n`);
  // Where the decimal sign is a comma, cells end at semicolons, and quotes within one count for nothing.
  expect(csvLine(["a;=b()", "a\t@b", 'a"\n+b', "a\r\n-1;-2", "a-b;c=d"])).toBe(
    `a;'=b(),a\t'@b,"a""\n'+b","a\r\n'-1;'-2",a-b;c=d\r\n`,
  );
});

/** The fields of all rows as RFC 4180 has them, but that a quote within a field is one, as spreadsheets take it. */
function fieldsOf(text: string, separator: string): string[] {
  const field = new RegExp(`(?:"((?:[^"]|"")*)(?:"|$))?([^${separator}\r\n]*)(?:${separator}|\r\n?|\n|$)`, "y");
  const fields: string[] = [];
  while (field.lastIndex < text.length) {
    const [, quoted = "", rest = ""] = field.exec(text) ?? [];
    fields.push(quoted.replaceAll('""', '"') + rest);
  }
  return fields;
}

it("writes no cell that begins a formula, whatever a reader takes for the separator", () => {
  const cell = fc.string({ unit: fc.constantFrom(...'=+-@;,"\t\r\n a') });
  const lines = fc.array(fc.array(cell, { minLength: 1 }), { minLength: 1 });
  const isFormula = (field: string) => /^[=+\-@]/.test(field);
  expect(fieldsOf(`a;"=b";""=c\n`, ";")).toEqual(["a", "=b", "=c"]);
  fc.assert(
    fc.property(lines, fc.constantFrom(",", ";", "\t"), (rows, separator) => {
      expect(fieldsOf(rows.map(csvLine).join(""), separator).filter(isFormula)).toEqual([]);
    }),
    { numRuns: sized({ quick: 300, full: 2_000 }), examples: [[[[';"=2+2;']], ";"]] },
  );
});
