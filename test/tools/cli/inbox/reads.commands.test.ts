/** Each command of `oncehook inbox` as a process: what it prints, as text and as JSON, and how it ends. */
import { copyFileSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import Database from "better-sqlite3";
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from "vitest";
import type { z } from "zod";
import { rows } from "../../../setup/form.ts";
import { becomeLater } from "../../../support/later-version.ts";
import { rowsOf as linesOf } from "../here.ts";
import { filledInbox, inbox as inboxHere } from "../inbox-own.ts";
import { NUMBER, TEXT } from "../inbox-place.ts";
import { SCHEMAS } from "../inbox-schemas.ts";
import { runToEnd } from "../running.ts";

const { folder, filled, copy: newInbox } = filledInbox();
const locks: Database.Database[] = [];
afterAll(() => {
  for (const lock of locks) lock.close();
});

type Way = typeof inboxHere;

/** As a user runs it. */
const asProcess: Way = (path, ...args) => runToEnd(["inbox", ...args], { ONCEHOOK_STORE: path }) as ReturnType<Way>;

let before: Promise<unknown> = Promise.resolve();
/** In this process, one after the other: quicker, and coverage counts it. */
const here: Way = (...given) => {
  const exit = before.then(() => inboxHere(...given));
  before = exit.catch(() => {});
  return exit;
};

let inbox: Way = here;
const WAYS = rows<readonly [string, Way]>(
  [
    ["here", here],
    ["as a process", asProcess],
  ],
  ([, each]) => each === here,
);

function inEachWay(title: string, tests: () => void): void {
  describe.each(WAYS)(`${title}, %s`, (_, chosen) => {
    beforeAll(() => {
      inbox = chosen;
    });
    tests();
  });
}

type Schema = keyof typeof SCHEMAS;

/** What it printed with `--json`, held against its schema. */
async function json<S extends Schema>(schema: S, path: string, ...args: readonly string[]) {
  const { code, output, errors } = await inbox(path, ...args, "--json");
  expect([code, errors]).toEqual([0, ""]);
  return rowsOf(schema, output);
}

function rowsOf<S extends Schema>(schema: S, output: string): readonly z.infer<(typeof SCHEMAS)[S]>[] {
  // The schema that parses it says the type.
  return linesOf({ output }).map((row) => SCHEMAS[schema].parse(row) as z.infer<(typeof SCHEMAS)[S]>);
}

inEachWay("oncehook inbox, to look", () => {
  it("lists events by filters, and where the next page begins", async () => {
    const [table, page, dead] = await Promise.all([
      inbox(filled, "ls", "--limit", "2", "--type", "message.queued"),
      json("event", filled, "ls", "--limit", "2", "--after", "7", "--oldest"),
      json("event", filled, "ls", "--state", "dead", "--number", NUMBER),
    ]);
    expect(table.output).toMatch(
      /^event +accepted +source +lane or id +seq +type +state +tries +error\n8 .* done, unhandled +1\n7 /,
    );
    expect(table).toMatchObject({ code: 0, errors: "There are more: --after 7\n" });
    expect(page.map(({ id }) => id)).toEqual([8]);
    expect(dead.map(({ id, errorCode }) => [id, errorCode])).toEqual([
      [7, "permanent_failure"],
      [2, "permanent_failure"],
    ]);
  });

  it("shows a message without its numbers and texts, until they are asked for, of which the audit tells", async () => {
    const path = newInbox();
    const [story, event, masked, revealed, none] = await Promise.all([
      inbox(filled, "show", "--id", "msg_1"),
      inbox(filled, "show", "4"),
      json("message", filled, "show", "4"),
      json("message", path, "show", "4", "--reveal", "--by", "ann"),
      inbox(filled, "show", "99"),
    ]);
    expect(story.output).toMatch(
      /^lane +1\nname +msg_1\n[\s\S]*number +…02\n[\s\S]*\n3 .*message.delivery[\s\S]*failed try/,
    );
    expect(`${story.output}${event.output}${JSON.stringify(masked)}`).not.toMatch(/5550100002|Yes please/);
    expect(event.output).toContain('"[hidden]": "2 fields"');
    expect(masked).toMatchObject([{ peer: "…02", events: [{ body: { masked: { data: { from: "…02" } } } }] }]);
    expect(revealed).toMatchObject([{ peer: NUMBER, events: [{ body: { text: expect.stringContaining(TEXT) } }] }]);
    expect(none).toMatchObject({ code: 3, output: "", errors: "error: There is no event 99.\n" });
    expect(await json("audit", path, "audit")).toMatchObject([{ act: "reveal", by: "ann", detail: "lane 2" }]);
  });

  it("groups dead letters by their error, and tells the statistics, the open messages and the acts", async () => {
    const [groups, stats, incomplete, text, audit] = await Promise.all([
      json("errorGroup", filled, "ls", "--group-by", "error"),
      json("stats", filled, "stats"),
      json("lane", filled, "incomplete", "--older-than", "1ms"),
      inbox(filled, "stats"),
      inbox(filled, "audit"),
    ]);
    expect(groups).toMatchObject([{ errorCode: "permanent_failure", error: "No order #", count: 2, exampleId: 7 }]);
    expect(stats).toMatchObject([{ location: `sqlite:${filled}`, gauges: { pending: 1, dead: 2, blockedLanes: 1 } }]);
    expect(incomplete.map(({ lane }) => lane)).toEqual(["msg_5", "msg_4", "msg_3", "msg_2"]);
    expect(text.output).toMatch(/\n {2}blocked lanes +1\n/);
    expect(audit).toMatchObject({ code: 0, output: "", errors: "No act is there that matches.\n" });
  });
});

inEachWay("oncehook inbox, to act", () => {
  it("replays and discards by id, and says what it could not", async () => {
    const path = newInbox();
    const replayed = await inbox(path, "replay", "2", "6", "99", "--by", "ann", "--json");
    const rows = rowsOf("eventAct", replayed.output);
    expect(rows.map(({ result }) => result)).toEqual(["replayed", "wrong_state", "not_found"]);
    expect(replayed.code).toBe(3);
    expect(await inbox(path, "discard", "6")).toMatchObject({ code: 0, output: "event 6: discarded\n" });
    const again = { code: 3, output: "event 6: left as it is: it is discarded\n" };
    expect(await inbox(path, "discard", "6")).toMatchObject(again);
    const audit = await json("audit", path, "audit");
    expect(audit.map(({ act, by }) => [act, by === "ann"])).toEqual([
      ["discard", false],
      ["replay", true],
    ]);
  });

  it("acts on all that match, once it was allowed to; a dry run changes nothing", async () => {
    const path = newInbox();
    const refusal = await inbox(path, "replay", "--all");
    expect(refusal).toMatchObject({ code: 2, output: "", errors: expect.stringContaining("add --yes") });
    const all = ["replay", "--all", "--skip-superseded"];
    const counts = { replayed: 1, superseded: 1, wrong_state: 0 };
    expect(await json("replay", path, ...all, "--dry-run")).toMatchObject([{ ...counts, dryRun: true }]);
    expect(await json("replay", path, ...all, "--yes")).toMatchObject([{ ...counts, dryRun: false }]);
    expect(await json("discard", path, "discard", "--state", "dead", "--yes")).toMatchObject([{ discarded: 1 }]);
  });

  it("lets messages go on that are blocked or wait", async () => {
    const path = newInbox();
    expect(await json("lane", path, "unblock", "--list")).toMatchObject([{ lane: "msg_4", status: "blocked" }]);
    const [unblocked, released] = [
      await json("laneAct", path, "unblock", "--all", "--yes"),
      await json("laneAct", path, "release", "--id", "msg_3"),
    ];
    expect(unblocked).toEqual([{ laneId: 5, result: "unblocked" }]);
    expect(released).toEqual([{ laneId: 4, event: 6, result: "released" }]);
  });

  it("looks at what is in quarantine, and acts on it", async () => {
    const path = newInbox();
    const [listed, shown, revealed] = await Promise.all([
      json("quarantined", path, "quarantine", "ls", "--state", "held"),
      json("quarantinedBody", path, "quarantine", "show", "1"),
      inbox(path, "quarantine", "show", "1", "--reveal"),
    ]);
    expect(listed).toMatchObject([{ id: 1, reason: "invalid_json", hasBody: true }]);
    expect(shown).toMatchObject([{ body: { masked: expect.stringMatching(/^\[\d+ bytes that are not JSON\]$/) } }]);
    expect(revealed.output).toContain(TEXT);
    const [told, ...others] = await json("audit", path, "audit");
    expect([told, others]).toMatchObject([{ act: "reveal_quarantined", detail: "quarantine 1" }, []]);
    const replayed = await inbox(path, "quarantine", "replay", "1", "--json");
    expect(rowsOf("quarantineAct", replayed.output)).toMatchObject([{ result: "invalid_event" }]);
    expect(replayed.code).toBe(3);
    expect(await json("quarantineAct", path, "quarantine", "discard", "1")).toMatchObject([{ result: "discarded" }]);
  });

  it("prunes by its own times, within the bounds", async () => {
    const path = newInbox();
    expect(await inbox(path, "prune", "--identities", "1h", "--yes")).toMatchObject({
      ...{ code: 2, output: "", errors: expect.stringMatching(/^error: --identities must be at least \d+ ms/) },
    });
    expect(await json("prune", path, "prune", "--handled-bodies", "0s", "--yes")).toMatchObject([{ bodies: 4 }]);
  });

  it("gives out what is held on a number, and erases it from every byte of the files", async () => {
    const path = newInbox();
    const holds = () =>
      readdirSync(dirname(path)).some((name) => readFileSync(join(dirname(path), name)).includes(NUMBER));
    // Somebody else has the inbox open, so that its log stays.
    const other = new Database(path);
    other.prepare("select count(*) from oncehook_event").get();
    const held = await json("held", path, "export", "--number", NUMBER);
    expect(held).toHaveLength(9);
    expect(holds()).toBe(true);
    expect(await json("erase", path, "erase", "--number", NUMBER, "--yes")).toEqual([{ erased: 9 }]);
    expect(readdirSync(dirname(path))).toContain("inbox.db-wal");
    expect(holds()).toBe(false);
    other.close();
    expect(await inbox(path, "export", "--number", NUMBER)).toMatchObject({ code: 3, output: "" });
    const again = await inbox(path, "erase", "--number", NUMBER, "--yes");
    expect([again.code, again.output]).toEqual([3, "Nothing is held.\n"]);
    expect(await inbox(path, "erase", "--number", NUMBER)).toMatchObject({ code: 2 });
  });

  it("copies the inbox, and says that it needs no migration", async () => {
    const path = newInbox();
    const to = join(dirname(path), "other.db");
    const copied = await json("copy", path, "copy", "--to", to);
    expect(copied).toMatchObject([{ from: `sqlite:${path}`, to: `sqlite:${to}`, events: 8, lanesBefore: 0 }]);
    expect(await json("migrate", to, "migrate")).toEqual([
      { location: `sqlite:${to}`, migrated: false, from: null, to: null },
    ]);
    expect(copied).toMatchObject([{ moved: false }]);
    expect(await inbox(path, "copy", "--to", to)).toMatchObject({ code: 0 });
  });

  it("moves the inbox, which then does not open, and opens it again when asked", async () => {
    const path = newInbox();
    const to = join(dirname(path), "other.db");
    const movedTo = `sqlite:${to}`;
    expect(await json("reopen", path, "reopen", "--yes")).toEqual([{ reopened: false, movedTo: null }]);
    expect(await json("copy", path, "copy", "--to", to, "--move")).toMatchObject([{ events: 8, moved: true }]);
    const refused = { code: 1, output: "", errors: expect.stringContaining(`was moved to ${movedTo}: use that one.`) };
    for (const args of [["ls"], ["migrate"], ["copy", "--to", join(dirname(path), "third.db")]])
      expect(await inbox(path, ...args)).toMatchObject(refused);
    expect(await inbox(path, "reopen")).toMatchObject({ code: 2 });
    expect(await json("reopen", path, "reopen", "--yes")).toEqual([{ reopened: true, movedTo }]);
    expect(await inbox(path, "ls")).toMatchObject({ code: 0 });
  });
});

inEachWay("oncehook inbox, where there is none to open", () => {
  /** What is at the place, the exit code, and what the line says. */
  const PLACES: Readonly<Record<string, readonly [make: (path: string) => void, code: number, says: string]>> = {
    "missing.db": [() => {}, 2, "There is no inbox at"],
    "text.db": [(path) => writeFileSync(path, "longer than a header, ".repeat(9)), 1, "not a SQLite database"],
    "foreign.db": [(path) => new Database(path).exec("create table theirs (id)").close(), 2, "There is no inbox at"],
    folder: [(path) => mkdirSync(path), 1, "is a directory: give the path of a file in it"],
    "newer.db": [makeNewer, 1, "upgrade oncehook"],
    "locked.db": [makeLocked, 1, "locked for too long"],
  };

  // All at once, since a lock is waited for for five seconds.
  it("says what is wrong, in one line", { timeout: 30_000 }, async () => {
    const places = Object.entries(PLACES);
    const at = mkdtempSync(join(folder, "wrong-"));
    for (const [name, [make]] of places) make(join(at, name));
    const exits = await Promise.all(places.map(([name]) => inbox(join(at, name), "ls")));
    for (const [index, [name, [, code, says]]] of places.entries()) {
      expect({ name, ...exits[index] }).toMatchObject({ name, code, output: "" });
      expect(exits[index]?.errors).toMatch(/^error: [^\n]+\n$/);
      expect(exits[index]?.errors).toContain(says);
    }
  });

  it("never shows the password of a server that it cannot reach", async () => {
    const exit = await inbox("postgres://app:hunter2@127.0.0.1:1/app", "ls", "--debug");
    expect(exit).toMatchObject({ code: 1, output: "", errors: expect.stringContaining("Check that the server runs") });
    expect(exit.errors).not.toContain("hunter2");
  });

  it("suggests the flag that was meant", async () => {
    const exit = await inbox(filled, "quarantine", "ls", "--stat", "held");
    expect(exit).toMatchObject({ code: 2, output: "", errors: expect.stringContaining("(Did you mean --state?)") });
  });
});

describe("oncehook inbox of a later version", () => {
  it("needs a migration first, which tells from where to where", async () => {
    inbox = here;
    const path = newInbox();
    onTestFinished(becomeLater());
    expect(await inbox(path, "ls")).toMatchObject({
      code: 1,
      errors: expect.stringMatching(/^error: The inbox has schema 1, .* run "oncehook inbox migrate" on it\.\n$/),
    });
    expect(await json("migrate", path, "migrate")).toMatchObject([{ migrated: true, from: 1, to: 2 }]);
  });
});

/** Until the tests are over. */
function makeLocked(path: string): void {
  copyFileSync(filled, path);
  const other = new Database(path);
  other.exec("begin immediate");
  locks.push(other);
}

function makeNewer(path: string): void {
  copyFileSync(filled, path);
  const db = new Database(path);
  db.exec("update oncehook_meta set value = 99 where key in ('schema', 'min_reader')");
  db.close();
}
