/** Which texts begin or end a transaction, held against what the server makes of them. */
import fc from "fast-check";
import pg from "pg";
import { describe, expect, inject, it } from "vitest";
import { transactionControlOf } from "../../../src/stores/postgres/effect-connection.ts";
import { sized } from "../../setup/form.ts";

/** Ends a transaction in a way that no effect may. */
const other = (text: string) => [text, "other"] as const;

describe("transactionControlOf()", () => {
  it.each([
    ["begin", "begin"],
    ["BEGIN;", "begin"],
    ["  begin work ;; ", "begin"],
    ["-- why\nBegin /* a /* nested */ comment */ Transaction", "begin"],
    ["start transaction isolation level read committed, read write", "begin"],
    ["begin not deferrable", "begin"],
    ["begin transaction isolation level read uncommitted read only", "begin read only"],
    ["/**/commit/**/work--", "commit"],
    ["END TRANSACTION", "commit"],
    ["commit and no chain", "commit"],
    ["rollback", "rollback"],
    ["\n\tabort work;", "rollback"],
    ["begin isolation level serializable", "isolation"],
    ["START TRANSACTION READ ONLY, ISOLATION LEVEL REPEATABLE READ", "isolation"],
    ["set transaction isolation level serializable", "isolation"],
    ["set local transaction read only, isolation level repeatable read", "isolation"],
    ...["commit and chain", "rollback and chain", "prepare transaction 'one'", "commit prepared 'one'"].map(other),
    ...["rollback prepared 'one'", "insert into t values (1); commit", "select ';'; commit; begin"].map(other),
    ...["select $$ ' $$; commit", "select e'\\''; commit", "select E'a''\\''; commit", "begin; commit"].map(other),
    other("select e'a'\n'\\''; commit"),
    other("create function f() returns int begin atomic select case when true then 1 end; end; commit"),
  ] as const)("finds %j", (text, control) => {
    expect(transactionControlOf(text)).toBe(control);
  });

  it.each([
    ...["", ";", "select 1", "insert into t values ('commit')", "insert into t values ('; commit; ')", "commitment"],
    ...["select 1; select 'commit'; set local lock_timeout = 7", "select 1 -- ; commit", 'select "commit;"'],
    ...["select 1 /* ; /* ; commit; */ ; rollback; */", 'select 1 as ";"; select 2 as "commit"'],
    ...["select e'it\\'s; commit; '", "select E'it''s; commit;\\\\'; select 1", "select a$b$; select c$b$"],
    ...["do $$ begin raise notice 'x; commit'; end $$", "do $a$ begin perform $b$; commit; $b$; end $a$; select 1"],
    ...[
      "savepoint commit",
      "rollback to savepoint mine",
      "rollback work to mine; release mine",
      "release savepoint mine",
    ],
    ...["prepare commit as select 1", "set transaction read only", "set local statement_timeout = 7"],
    "set session characteristics as transaction isolation level serializable",
    "create function f() returns int begin atomic select 1; select case when true then 1 end; end",
    "create or replace procedure p() begin atomic insert into t values (1); end; select 1",
    "create rule r as on insert to t do also (delete from u; delete from v)",
    ...["select case when true then 1 end; select 2", "select $1; select $2", "select 'not closed; commit"],
  ])("lets %j pass", (text) => {
    expect(transactionControlOf(text)).toBeNull();
  });

  it("misses no text with which the server would end a transaction", { timeout: 60_000 }, async () => {
    const client = new pg.Client({ connectionString: inject("postgresUrl") });
    await client.connect();
    client.on("notice", () => {});
    let ended = 0;
    const odd = fc.constantFrom(
      ...["commit", "COMMIT", "rollback", "abort", "end", "begin", "work", "and", "chain", "to", "savepoint", "kept"],
      ...["prepare", "transaction", "'", "''", '"', "$$", "$a$", "$1", "e'", "E'", "\\", "\\'", "--", "\n", "/*", "*/"],
      ...[";", ";", ";", " ", " ", "select 1", "select ", "do ", "a", "(", ")", ",", "atomic", "case"],
    );
    const whole = fc.constantFrom(
      ...["select e'\\''", "select e'a''\\''", "select 'a\\'", "select e'a'\n'\\''", "select $$ ' $$"],
      ...["select $a$ $$ ' $a$", "/* ' /* */ ' */", "--'\n", "/* -- */", 'select 1 as "\'"', 'select 1 as "a$$"'],
      ...["select '$$'", "select 1 as a$$", "select case when true then 1 end", "select u&'\\0061'"],
      ...["select '--'", "select '/*'", "select 1"],
    );
    const joined = (parts: fc.Arbitrary<string>, most: number) =>
      fc.array(parts, { minLength: 1, maxLength: most }).map((list) => list.join(""));
    const ends = fc.constantFrom("commit", "End", "abort", "rollback ");
    const texts = fc.oneof(
      joined(odd, 12),
      fc.tuple(joined(fc.oneof(whole, fc.constant(";")), 4), ends).map(([first, end]) => `${first};${end}`),
    );
    await fc.assert(
      fc.asyncProperty(texts, async (text) => {
        await client.query("begin; savepoint kept");
        await client.query(text).catch(() => {});
        const isOver = await client.query("rollback to savepoint kept").then(
          () => false,
          () => true,
        );
        await client.query("rollback");
        if (isOver) ended++;
        // What releases the savepoint itself ends no transaction, but is not among the pieces.
        expect(isOver && transactionControlOf(text) === null, text).toBe(false);
      }),
      { numRuns: sized({ quick: 500, full: 3_000 }) },
    );
    await client.end();
    expect(ended).toBeGreaterThan(sized({ quick: 80, full: 500 }));
  });
});
