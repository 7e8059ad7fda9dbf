/** A state file: what it keeps, in which order, and which files are refused. */
import { copyFileSync, mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import Database from "better-sqlite3";
import { describe, expect, it, onTestFinished } from "vitest";
import { createEmulator, type Emulator } from "../../src/emulator/index.ts";
import { silentLogger } from "../../src/internal/logger.ts";
import { createFakeClock } from "../../src/testing/fake-clock.ts";
import { call, send, start, startCatcher, tokenOf } from "./support.ts";

describe("option state", () => {
  it("goes on where the last emulator stood: with its records, tokens and clock", async () => {
    const state = newFile();
    const first = await start({ state });
    const token = await tokenOf(first);
    first.control.updateClient("ac_other", { status: "INACTIVE" });
    first.control.updateNumber(first.fixtures.numbers.full, { campaignRegId: "C777" });
    await send(first, token);
    await first.clock.advance(1_000_000);
    const exported = first.control.exportState();
    await first.close();

    const second = await start({ state });
    expect(second.clock.now()).toBe(first.clock.now());
    expect(second.control.exportState()).toEqual(exported);
    expect((await call(second, "GET", "/api/core/whoami", { token })).body.assignedNumbers.total).toBe(5);
  });

  it("answers a send that was answered before with the same bytes, and sends nothing again (SND-17)", async () => {
    const state = newFile();
    const first = await start({ state });
    const token = await tokenOf(first);
    const before = await send(first, token, {}, { "idempotency-key": "k-1" });
    await first.close();

    const second = await start({ state });
    const after = await send(second, token, {}, { "idempotency-key": "k-1" });
    expect([after.status, after.text]).toEqual([202, before.text]);
    expect(second.control.messages()).toHaveLength(1);
  });

  it("makes the retries that were pending, at their time and with the secret of before (DLV-6)", async () => {
    const state = newFile();
    const catcher = await startCatcher();
    catcher.answer = 500;
    const first = await start({ state, lifecycle: "instant", deliveryUrl: catcher.url, webhookSecret: "kept-secret" });
    await send(first, await tokenOf(first));
    await first.clock.idle();
    const tried = catcher.caught.length;
    await first.close();

    catcher.answer = 200;
    const second = await start({ state });
    expect(second.webhookSecret).toBe("kept-secret");
    await second.clock.advance(59_999);
    expect(catcher.caught).toHaveLength(tried);
    await second.clock.advance(1);
    expect(catcher.caught).toHaveLength(2 * tried);
    expect(tried).toBe(3);
    expect(second.control.deliveries({ state: "delivered" })).toHaveLength(3);
  });

  it("lets a message's lifecycle go on, and gives out ids that are new", async () => {
    const state = newFile();
    const first = await start({ state });
    await send(first, await tokenOf(first));
    await first.close();

    const second = await start({ state });
    await second.clock.advance(10_000);
    expect(second.control.messages()).toMatchObject([{ messageId: "msg_a8244c_000001", status: "delivered" }]);
    const sent = await send(second, await tokenOf(second));
    expect(sent.body.results[0].messageId).toBe("msg_a8244c_000002");
  });

  it("goes before options that fill a new state, and tells the credentials that work", async () => {
    const state = newFile();
    const first = await start({ state, clientSecret: "first-secret" });
    await first.close();
    const second = await start({ state, clientSecret: "second-secret", seed: "another" });
    expect(second.clientSecret).toBe("first-secret");
    expect(second.fixtures).toEqual(first.fixtures);
    expect(await tokenOf(second, second.fixtures.clients.other)).toMatch(/^[0-9a-f]{64}$/);
  });

  it("writes a change by the end of the turn in which it is made, and an advance before it resolves", async () => {
    const state = newFile();
    const emulator = await start({ state });
    emulator.control.updateNumber(emulator.fixtures.numbers.full, { smsEnabled: false });
    await turn();
    expect(storedNow(state).get("numbers num_000001")).toContain('"smsEnabled":false');
    await emulator.clock.advance(5);
    expect(storedNow(state).get("meta now")).toBe(String(emulator.clock.now()));
  });

  it("writes only what changed", async () => {
    const state = newFile();
    const emulator = await start({ state });
    const before = storedNow(state);
    emulator.control.updateNumber("num_000003", { smsEnabled: true });
    await turn();
    const after = storedNow(state);
    expect([...after].filter(([id, json]) => before.get(id) !== json).map(([id]) => id)).toEqual([
      "numbers num_000003",
    ]);
    expect([...after.keys()]).toEqual([...before.keys()]);
  });

  it("keeps the order in which records were made, over changes, removals and a reset", async () => {
    const state = newFile();
    const first = await start({ state });
    const token = await tokenOf(first);
    for (let i = 0; i < 3; i++) await send(first, token);
    first.control.failMessage("msg_a8244c_000001");
    first.control.reset();
    await send(first, await tokenOf(first));
    const order = orderOf(first);
    await first.close();
    expect(orderOf(await start({ state }))).toEqual(order);
  });

  it("keeps the order of an import that turns it round", async () => {
    const state = newFile();
    const first = await start({ state });
    const { version, tables } = first.control.exportState();
    const numbers = Object.fromEntries(Object.entries(tables.numbers ?? {}).reverse());
    first.control.importState({ version, tables: { ...tables, numbers } });
    const order = orderOf(first);
    expect(order).toContainEqual(Object.keys(numbers));
    await first.close();
    expect(orderOf(await start({ state }))).toEqual(order);
  });

  it("has what an answer is about before the answer is there", async () => {
    const state = newFile();
    const emulator = await start({ state });
    await emulator.handle(new Request(`${emulator.url}/api/core/whoami`));
    expect(storedNow(state).get("requests 1")).toContain("/api/core/whoami");
  });
});

describe("a state file that is refused", () => {
  it("is in use by another emulator, until that one is closed", async () => {
    const state = newFile();
    const first = await start({ state });
    await expect(create(state)).rejects.toThrow(/in use by another emulator/);
    await first.close();
    await (await create(state)).close();
  });

  it("is another program's database, which stays as it was", async () => {
    const state = newFile();
    const other = new Database(state);
    other.exec("CREATE TABLE theirs (id INTEGER)");
    other.close();
    const bytes = readFileSync(state);
    await expect(create(state)).rejects.toMatchObject({ code: "invalid_option", fields: { option: "state" } });
    await expect(create(state)).rejects.toThrow(/another program's database/);
    expect(readFileSync(state)).toEqual(bytes);
  });

  it("is no database", async () => {
    const state = newFile();
    writeFileSync(state, "hello ".repeat(1_000));
    await expect(create(state)).rejects.toThrow(/not a SQLite database/);
    expect(readFileSync(state, "utf8")).toBe("hello ".repeat(1_000));
  });

  it("is a newer version's", async () => {
    const state = newFile();
    await (await create(state)).close();
    const db = new Database(state);
    db.pragma("user_version = 2");
    db.close();
    await expect(create(state)).rejects.toThrow(/newer version/);
  });

  it("lies in no directory, or is one", async () => {
    const directory = newFile();
    await expect(create(join(directory, "state.db"))).rejects.toThrow(/its directory exists/);
    mkdirSync(directory);
    await expect(create(directory)).rejects.toThrow(/cannot be opened/);
  });

  it.each([
    ["is no JSON", "UPDATE records SET json = '{' WHERE name = 'clients'"],
    ["does not fit", `UPDATE records SET json = '{"status":1}' WHERE name = 'clients'`],
    ["is of no table", "INSERT INTO records (name, id, json) VALUES ('__proto__', 'x', '1')"],
  ])("holds a record that %s", async (_, sql) => {
    const state = newFile();
    await (await create(state)).close();
    const db = new Database(state);
    db.exec(sql);
    db.close();
    await expect(create(state)).rejects.toThrow(/damaged/);
    await expect(create(state)).rejects.not.toThrow(/in use/);
  });

  it("is free again when the emulator could not listen", async () => {
    const state = newFile();
    const first = await createEmulator({ logger: silentLogger });
    onTestFinished(() => first.close());
    const port = Number(new URL(first.url).port);
    await expect(createEmulator({ state, port, logger: silentLogger })).rejects.toThrow(/cannot listen/);
    await (await create(state)).close();
  });

  it("sends nothing when it cannot listen, neither what is due nor what comes due", async () => {
    const state = newFile();
    const catcher = await startCatcher();
    catcher.answer = 500;
    const systemClock = createFakeClock();
    const options = { state, systemClock, clock: "real", lifecycle: "instant", logger: silentLogger } as const;
    const first = await start({ ...options, deliveryUrl: catcher.url });
    await send(first, await tokenOf(first));
    await first.clock.idle();
    const tried = catcher.caught.length;
    const port = Number(new URL(catcher.url).port);
    await first.close();

    await systemClock.advance(60_000);
    await expect(createEmulator({ ...options, port })).rejects.toThrow(/cannot listen/);
    for (let minute = 0; minute < 10; minute++) {
      await systemClock.advance(60_000);
      await fetch(catcher.url, { method: "HEAD" });
    }
    expect(catcher.caught.filter(({ method }) => method === "POST")).toHaveLength(tried);
    expect(tried).toBe(3);

    catcher.answer = 200;
    const second = await start(options);
    await second.clock.idle();
    expect(second.control.deliveries({ state: "delivered" })).toHaveLength(3);
  });
});

it.skipIf(process.platform === "win32")("can be read by its owner only, since it holds secrets", async () => {
  const state = newFile();
  await start({ state });
  for (const file of [state, `${state}-wal`]) expect(statSync(file).mode & 0o777).toBe(0o600);
});

const create = (state: string) => createEmulator({ state, port: null, logger: silentLogger });

/** The rows as a killed process would leave them: of a copy, since the file is locked. By table and id, in their order. */
function storedNow(file: string): Map<string, string> {
  const copy = join(mkdtempSync(join(tmpdir(), "oncehook-copy-")), "state.db");
  onTestFinished(() => rmSync(join(copy, ".."), { recursive: true }));
  for (const end of ["", "-wal"]) copyFileSync(`${file}${end}`, `${copy}${end}`);
  const db = new Database(copy);
  const rows = db.prepare("SELECT name, id, json FROM records ORDER BY position").all();
  db.close();
  return new Map(
    (rows as { name: string; id: string; json: string }[]).map((row) => [`${row.name} ${row.id}`, row.json]),
  );
}

function orderOf({ control }: Emulator): string[][] {
  return Object.values(control.exportState().tables).map((table) => Object.keys(table));
}

function newFile(): string {
  const directory = mkdtempSync(join(tmpdir(), "oncehook-state-"));
  onTestFinished(() => rmSync(directory, { recursive: true }));
  return join(directory, "state.db");
}

/** A turn of the event loop, by whose end changes are kept. */
function turn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}
