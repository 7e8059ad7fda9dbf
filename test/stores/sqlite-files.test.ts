/** The files of a SQLite inbox: the newest events are in its `-wal`, so that must lie, and stay, where the next process finds it. */
import { execFile, execFileSync, spawnSync } from "node:child_process";
import {
  copyFileSync,
  linkSync,
  mkdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import Database from "better-sqlite3";
import { describe, expect, it, type TestContext } from "vitest";
import { copyInbox } from "../../src/inbox/copy.ts";
import type { InboxStore } from "../../src/inbox/store.ts";
import { cautionsAbout, prepareFile } from "../../src/stores/sqlite/connection.ts";
import { sqliteStore } from "../../src/stores/sqlite.ts";
import { createFakeClock } from "../../src/tools/testing/fake-clock.ts";
import { failureOf } from "../support/failure-of.ts";
import { connect, makeInbox, makePath, open, refusalOf } from "./sqlite-place.ts";
import { NEXT, SLOTS, secretsAt } from "./sqlite-secrets-place.ts";
import { event, turn } from "./sqlite-turns.ts";

/** Compiled by the tests' global set-up. */
const CHILD = fileURLToPath(new URL("../../.build/test/stores/sqlite-files-child.js", import.meta.url));

const run = promisify(execFile);

const isWindows = process.platform === "win32";

/** An open inbox, whose files are looked at as its clock goes on. */
async function opened(path: string) {
  const clock = createFakeClock();
  return { clock, store: await open(sqliteStore(path), { clock }) };
}

/** The openers of the file: a receiver, an operator or a copy's source, a copy's target, secrets. */
async function refusalsOf(path: string, from: string): Promise<unknown[]> {
  return [
    await refusalOf(path),
    await refusalOf(path, "recorded"),
    await failureOf(copyInbox({ from: sqliteStore(path), to: sqliteStore(makePath()) })),
    await failureOf(copyInbox({ from: sqliteStore(from), to: sqliteStore(path) })),
    await failureOf(secretsAt(path).read("inbound")),
  ];
}

// Where the file may lie.

describe.skipIf(isWindows)("a database with a hard link", () => {
  it("is refused under each of its names, with the fix, and opened once one is left (I2)", async () => {
    const [path, source] = [await makeInbox(), await makeInbox()];
    const other = join(dirname(path), "other.db");
    linkSync(path, other);
    for (const name of [path, other]) {
      const message = expect.stringMatching(/has 2 names \(hard links\).*"find \/ -xdev -samefile .*\.db" lists them/);
      const refused = expect.objectContaining({ code: "unsafe_location", message });
      expect(await refusalsOf(name, source)).toEqual(Array(5).fill(refused));
    }
    rmSync(other);
    await open(sqliteStore(path));
  });

  it.each(["-wal", "-shm", "-journal"])("of its %s is refused", async (suffix) => {
    const path = await makeInbox();
    const running = await open(sqliteStore(path));
    await running.step(turn({ accepts: [event("m")] }));
    if (suffix === "-journal") writeFileSync(`${path}${suffix}`, "", { mode: 0o600 });
    linkSync(`${path}${suffix}`, join(dirname(path), "kept"));
    const message = expect.stringContaining(`${path}${suffix} has 2 names`);
    expect(await refusalOf(path)).toMatchObject({ code: "unsafe_location", message });
  });
});

describe.skipIf(isWindows)("a link", () => {
  it.each(["-wal", "-shm"])("in the place of %s is refused, with the fix", async (suffix) => {
    const path = await makeInbox();
    const elsewhere = join(dirname(makePath()), "log");
    writeFileSync(elsewhere, "", { mode: 0o600 });
    symlinkSync(elsewhere, `${path}${suffix}`);
    const message = expect.stringContaining(`${path}${suffix} is a link`);
    expect(await refusalOf(path)).toMatchObject({ code: "unsafe_location", message });
  });

  it("to the database is followed, and the log beside the file at its end is looked at", async () => {
    const [path, link] = [await makeInbox(), makePath()];
    symlinkSync(path, link);
    const { clock, store } = await opened(link);
    expect(await outcomeOf(store, "a")).toBe("accepted");
    renameSync(`${path}-wal`, `${path}-wal.moved`);
    await clock.advance(1_000);
    expect(await outcomeOf(store, "b")).toMatch(/inbox\.db-wal/);
  });
});

describe("a database that is mounted", () => {
  /** Runs `script` with mounts of its own, which end with it. */
  function withMounts(context: TestContext, script: string): readonly Record<string, unknown>[] {
    const { status, stdout, stderr } = spawnSync("unshare", ["-m", "sh", "-ec", script], { encoding: "utf8" });
    if (status !== 0) context.skip(`needs the right to mount: ${stderr.trim() || "there is no unshare here"}`);
    return stdout
      .split("\n")
      .filter((line) => line.startsWith("{"))
      .map((line) => JSON.parse(line) as Record<string, unknown>);
  }
  const child = (path: string) => `"${process.execPath}" "${CHILD}" "${path}"; echo`;

  it("as a single file is refused by its path and by a link to it; in its directory it is opened (I2)", (context) => {
    const directory = join(dirname(makePath()), "a place");
    for (const name of ["host", "container", "whole"]) mkdirSync(join(directory, name), { recursive: true });
    const [host, inside] = [join(directory, "host/inbox.db"), join(directory, "container/inbox.db")];
    for (const file of [host, inside]) writeFileSync(file, "", { mode: 0o600 });
    const link = join(directory, "link.db");
    symlinkSync(inside, link);
    const [file, linked, whole] = withMounts(
      context,
      `mount --bind "${host}" "${inside}"; ${child(inside)}; ${child(link)}
       mount --bind "${directory}/host" "${directory}/whole"; ${child(join(directory, "whole/inbox.db"))}`,
    );
    const message = expect.stringContaining(
      `is mounted as a single file, so the files that SQLite puts next to it, with the newest events, would be lost with the container: mount the directory ${directory}/container instead.`,
    );
    expect(file).toMatchObject({ code: "unsafe_location", message });
    expect(linked).toMatchObject({ code: "unsafe_location", message });
    expect(whole).toMatchObject({ accepted: "accepted" });
  });

  it("on another device than its directory, and not by itself, is warned of", (context) => {
    // Layers on two file systems give a directory and the files in it different devices.
    const [root, layers] = [dirname(makePath()), dirname(makePath())];
    for (const name of ["upper", "work", "merged"]) mkdirSync(join(root, name));
    const mounted = `mount -t tmpfs tmpfs "${layers}"; mkdir "${layers}/lower"
      mount -t overlay overlay -o "lowerdir=${layers}/lower,upperdir=${root}/upper,workdir=${root}/work,xino=off" "${root}/merged"`;
    const [opened] = withMounts(context, `${mounted}; ${child(join(root, "merged/inbox.db"))}`);
    const codes = JSON.stringify(opened?.warnings).match(/(?<="code":")\w+/g);
    expect(opened).toMatchObject({ accepted: "accepted" });
    expect(codes).toEqual(["ephemeral_disk", "other_device"]);
  });

  it.runIf(process.platform === "linux")("with its directory on a disk that a restart empties is warned of", () => {
    const path = prepareFile(makePath());
    const typeOf = (of: string) => (of === dirname(path) ? 0x794c7630 : 0xef53);
    expect(cautionsAbout(path, typeOf)).toMatchObject([{ code: "ephemeral_disk" }]);
  });
});

// What happens to its files while it is open.

/** Of an event that comes now: `accepted`, or the message that the delivery is refused with. */
async function outcomeOf(store: InboxStore<never>, message: string): Promise<string> {
  const { accepted } = await store.step(turn<never>({ accepts: [event(message)] }));
  const [answer] = accepted;
  return answer?.outcome === "failed" ? (answer.error as Error).message : String(answer?.outcome);
}

/** The messages in the file at `path` alone, as another machine would find it after a loss of everything else. */
function messagesIn(path: string): unknown[] {
  const copy = join(dirname(makePath()), "alone.db");
  copyFileSync(path, copy);
  return connect(copy).prepare("select name from oncehook_lane order by id").pluck().all();
}

const remove = (path: string) => rmSync(path);
const replace = (path: string) => {
  const bytes = readFileSync(path);
  // While the old one is there, so that the new one does not get its number.
  writeFileSync(`${path}.new`, bytes, { mode: 0o600 });
  renameSync(`${path}.new`, path);
};
const linkAway = (path: string) => {
  renameSync(path, `${path}.moved`);
  symlinkSync(`${path}.gone`, path);
};

describe.skipIf(isWindows)("an open inbox", () => {
  it.each([
    ["is removed", "", remove],
    ["is removed", "-wal", remove],
    ["is removed", "-shm", remove],
    ["is replaced", "", replace],
    ["is replaced", "-wal", replace],
    ["is replaced", "-shm", replace],
    ["is a dead link", "-wal", linkAway],
  ])("accepts nothing once a file of it %s (inbox.db%s), and names it (I2)", async (_how, suffix, change) => {
    const path = makePath();
    const { clock, store } = await opened(path);
    expect(await outcomeOf(store, "before")).toBe("accepted");
    change(`${path}${suffix}`);
    await clock.advance(1_000);
    const message = `Moved, removed or replaced while it was open: ${path}${suffix}. Put it back, or restart every process that uses the inbox.`;
    expect(await outcomeOf(store, "after")).toContain(message);
    // Nor does it report success for other requests.
    const act = { kind: "discard", event: 1 } as const;
    expect(await failureOf(store.act(act, "test"))).toMatchObject({ code: "store_unavailable" });
    expect((await store.audit(10)).length).toBe(0);
  });

  it("accepts again once its log is back", async () => {
    const path = makePath();
    const { clock, store } = await opened(path);
    renameSync(`${path}-wal`, `${path}-wal.moved`);
    await clock.advance(1_000);
    expect(await outcomeOf(store, "a")).toContain("-wal");
    renameSync(`${path}-wal.moved`, `${path}-wal`);
    await clock.advance(1_000);
    expect(await outcomeOf(store, "b")).toBe("accepted");
  });

  it("copies into the file what it acknowledged before it noticed, so that a kill loses nothing (I2)", async () => {
    const path = await makeInbox();
    const { clock, store } = await opened(path);
    expect(await outcomeOf(store, "before")).toBe("accepted");
    rmSync(`${path}-wal`);
    rmSync(`${path}-shm`);
    // Within the second since the last look.
    expect(await outcomeOf(store, "meanwhile")).toBe("accepted");
    expect(messagesIn(path)).toEqual([]);
    await clock.advance(1_000);
    expect(await outcomeOf(store, "after")).toContain("-wal");
    expect(messagesIn(path)).toEqual(["before", "meanwhile"]);
  });

  it("leaves the file alone if another process has made itself new ones", async () => {
    const path = await makeInbox();
    const { clock, store } = await opened(path);
    expect(await outcomeOf(store, "before")).toBe("accepted");
    rmSync(`${path}-wal`);
    rmSync(`${path}-shm`);
    execFileSync(process.execPath, [CHILD, path]);
    const written = () => statSync(path, { bigint: true }).mtimeNs;
    const before = written();
    await clock.advance(1_000);
    expect(await outcomeOf(store, "after")).toContain("-wal");
    expect(written()).toBe(before);
  });

  it("accepts after all that SQLite itself does with them: checkpoints, VACUUM, other processes that end", async () => {
    const path = makePath();
    const { clock, store } = await opened(path);
    const accepts = async (message: string) => {
      await clock.advance(1_000);
      expect(await outcomeOf(store, message)).toBe("accepted");
    };
    await accepts("a");
    for (const mode of ["PASSIVE", "FULL", "RESTART", "TRUNCATE"]) {
      const other = new Database(path);
      other.pragma(`wal_checkpoint(${mode})`);
      other.close();
      await accepts(mode);
    }
    const other = new Database(path);
    expect(() => other.pragma("journal_mode = DELETE")).toThrow();
    other.exec("vacuum");
    other.close();
    await accepts("b");
    expect(JSON.parse(execFileSync(process.execPath, [CHILD, path], { encoding: "utf8" }))).toMatchObject({
      accepted: "accepted",
    });
    await accepts("c");
    // Its own, when nothing has happened for long.
    await clock.advance(120_000);
    await accepts("d");
    await makeInbox(path);
    await accepts("e");
    // Another file that SQLite itself restores into this one.
    const backup = makePath();
    await connect(path).backup(backup);
    await connect(backup).backup(path);
    await accepts("f");
  });

  it("that a copy writes to does not count as copied once its log is gone", async () => {
    const [from, to] = [await makeInbox(), makePath()];
    const store = await open(sqliteStore(from));
    expect(await outcomeOf(store, "a")).toBe("accepted");
    await store.close();
    const copying = copyInbox({
      from: sqliteStore(from),
      to: sqliteStore(to),
      onProgress: ({ phase }) => phase === "compare" && rmSync(`${to}-wal`, { force: true }),
    });
    expect(await failureOf(copying)).toMatchObject({ code: "store_unavailable" });
  });

  it("of secrets writes none once its log is gone: a rotation must not go on with it", async () => {
    const path = makePath();
    const secrets = secretsAt(path);
    expect(await secrets.write("delivery", SLOTS, 0)).toBe(true);
    rmSync(`${path}-wal`);
    const next = { ...SLOTS, next: { secret: NEXT, since: 1, rotatedAtBefore: null, hadSecret: true } };
    expect(await failureOf(secrets.write("delivery", next, 1))).toMatchObject({ code: "store_unavailable" });
  });
});

describe.skipIf(isWindows)("an inbox whose log alone was removed", () => {
  it("is opened by nobody, since a process that has it open would be harmed, until the index is removed too", async () => {
    const path = makePath();
    const running = await open(sqliteStore(path));
    expect(await outcomeOf(running, "a")).toBe("accepted");
    rmSync(`${path}-wal`);
    const message = expect.stringMatching(/-wal was removed.*stop every receiver, and put .*-wal back\./);
    const refused = expect.objectContaining({ code: "unsafe_location", message });
    expect(await refusalsOf(path, await makeInbox())).toEqual(Array(5).fill(refused));
    await running.close();
    await open(sqliteStore(path));
  });

  it("is not what processes leave that open and close it beside each other", async () => {
    const path = await makeInbox();
    const outcomes = await Promise.all(
      Array.from({ length: 4 }, async () => {
        const answers: unknown[] = [];
        for (let turns = 0; turns < 3; turns++)
          answers.push(JSON.parse((await run(process.execPath, [CHILD, path])).stdout));
        return answers;
      }),
    );
    expect(outcomes.flat()).toEqual(Array(12).fill(expect.objectContaining({ accepted: "accepted" })));
  });
});
