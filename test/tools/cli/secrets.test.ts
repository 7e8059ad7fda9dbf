/** `oncehook secrets` on a SQLite file; test/stores/postgres/secrets-command.test.ts has it on Postgres. */
import { randomBytes } from "node:crypto";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it, onTestFinished } from "vitest";
import { sqliteSecrets, sqliteStore } from "../../../src/stores/sqlite.ts";
import { contextOf } from "../../stores/sqlite-turns.ts";
import { rowsOf } from "./here.ts";
import { newFile, newFolder } from "./place.ts";
import { expectALife, type Scene, SECRET, sceneOf, serviceOf } from "./secrets-scene.ts";

function newScene(): Scene & { readonly store: string } {
  const store = join(newFolder(), "inbox.db");
  return { store, ...sceneOf(store, (keyFile) => sqliteSecrets(store, { keyFile })) };
}

describe("oncehook secrets", () => {
  it("adopts, rotates and tells how it stands, and prints no secret", () => expectALife(newScene()));

  it("says with 3 that a kind has no secret", async () => {
    const { run } = newScene();
    await run("adopt", "--kind", "delivery");
    const none = await run("status", "--json");
    expect([none.code, rowsOf(none)]).toMatchObject([3, [{ phase: "none" }, { phase: "settled" }]]);
  });

  it("waits for the receivers of the inbox, ends with 1 where one lacks the secret, and goes on later", async () => {
    const { run, store: file, stored } = newScene();
    await run("adopt", "--kind", "delivery");
    const { flags } = await serviceOf();
    const store = sqliteStore(file);
    await store.open(contextOf());
    onTestFinished(() => store.close());
    await store.heartbeat({ keyringVersion: "another", counters: {} });

    const unready = await run("status", "--kind", "delivery");
    expect([unready.code, unready.output]).toEqual([3, expect.stringContaining("(not ready)")]);
    const waited = await run("rotate", "--kind", "delivery", "--wait", "0s", ...flags);
    expect([waited.code, waited.output]).toEqual([1, ""]);
    expect(waited.errors).toMatch(/^error: 1 receiver does not use the new delivery secret/m);
    expect(await stored()).toMatchObject({ current: SECRET, next: expect.any(Object) });
    expect((await run("status", "--kind", "delivery")).output).toContain("installing");
  });

  it("tells what the service refuses with 1", async () => {
    const { run } = newScene();
    const { flags } = await serviceOf({ unspecified: { "webhooks.routes": "404" } });
    await run("adopt", "--kind", "delivery");
    const { code, errors } = await run("rotate", "--kind", "delivery", ...flags);
    const message = /^error: webhooks\.get was answered with 404 NOT_FOUND/m;
    expect([code, errors]).toEqual([1, expect.stringMatching(message)]);
  });

  it.each([
    [["rotate", "--kind", "delivery"], "There is no inbox at"],
    [["status"], "There is no inbox at"],
  ])("%j makes no inbox at a mistyped path", async (args, message) => {
    const { run, store } = newScene();
    const { flags } = await serviceOf({ port: null });
    const exit = await run(...args, ...(args[0] === "rotate" ? flags : []));
    expect([exit.code, exit.errors]).toEqual([2, expect.stringContaining(message)]);
    expect(existsSync(store)).toBe(false);
  });

  it.each([
    [["adopt"], /Say which secret: --kind delivery/],
    [["adopt", "--kind", "outbound"], /--kind takes inbound or delivery/],
    [["adopt", "--kind", "delivery", "--key-file", ""], /Say which key: --key-file FILE/],
    [["adopt", "--kind", "delivery", "--encoding", "rot13"], /--encoding/],
    [["adopt", "--kind", "delivery", "--secret-file", "SHORT"], /is 11 bytes long; a secret has at least 16/],
    [["rotate", "--kind", "delivery"], /required option '--base-url/],
    [["status", "--schema", "x"], /--schema goes with a postgres:\/\/ address/],
  ])("refuses %j with 2", async (args, message) => {
    const { run } = newScene();
    const short = newFile("elevenbytes");
    const exit = await run(...args.map((arg) => (arg === "SHORT" ? short : arg)));
    expect([exit.code, exit.output]).toEqual([2, ""]);
    expect(exit.errors).toMatch(message);
    expect(exit.errors).not.toContain("elevenbytes");
  });

  it("says that the key is another one with 1", async () => {
    const { run } = newScene();
    await run("adopt", "--kind", "delivery");
    const other = newFile(randomBytes(32).toString("hex"));
    const { code, errors } = await run("status", "--key-file", other);
    expect([code, errors]).toEqual([1, expect.stringMatching(/^error: /)]);
  });
});
