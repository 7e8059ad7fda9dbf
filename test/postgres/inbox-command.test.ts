/** `oncehook inbox` on Postgres: the same commands, and a server that refuses. */
import { expect, inject, it } from "vitest";
import { fillInbox, NUMBER } from "../cli/inbox-place.ts";
import { runToEnd } from "../cli/running.ts";
import { newInboxFile } from "../receiver/bench.ts";
import { newSchema, urlOf } from "./place.ts";

const url = () => inject("postgresUrl");

function inbox(store: string, ...args: readonly string[]) {
  return runToEnd(["inbox", ...args, "--json"], { ONCEHOOK_STORE: store });
}

it("copies an inbox there, lists it and erases from it", { tags: "full" }, async () => {
  const [file, schema] = [newInboxFile(), newSchema()];
  await fillInbox(file);
  const copy = ["inbox", "copy", "--from", file, "--to-schema", schema, "--json"];
  const copied = await runToEnd(copy, { ONCEHOOK_COPY_TO: url() });
  expect(copied).toMatchObject({ code: 0, errors: "" });
  expect(JSON.parse(copied.output)).toMatchObject({ events: 8, dead: 2, quarantined: 1 });
  const listed = await inbox(url(), "ls", "--number", NUMBER, "--state", "dead", "--schema", schema);
  expect(listed).toMatchObject({ code: 0, errors: "" });
  expect(listed.output.match(/"id":\d/g)).toEqual(['"id":7', '"id":2']);
  const erased = await inbox(url(), "erase", "--number", NUMBER, "--yes", "--schema", schema);
  expect(erased).toMatchObject({ output: '{"erased":9}\n' });
});

it("reports in one line why a server refuses, without the password", async () => {
  const wrong = new URL(url());
  wrong.password = "hunter2";
  const [password, database, schema] = await Promise.all([
    inbox(wrong.href, "ls", "--debug"),
    inbox(urlOf({ database: "nowhere" }), "ls"),
    inbox(url(), "ls", "--schema", newSchema()),
  ]);
  expect(password).toMatchObject({
    code: 1,
    output: "",
    errors: expect.stringContaining("the password in the address"),
  });
  expect(password.errors).not.toContain("hunter2");
  expect(database).toMatchObject({ code: 1, errors: expect.stringMatching(/^error: [^\n]*database's name[^\n]*\n$/) });
  expect(schema).toMatchObject({ code: 2, errors: expect.stringMatching(/^error: There is no inbox at [^\n]+\n$/) });
});
