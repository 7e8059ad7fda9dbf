/** Whose database and key files are opened, and how: with real owners, which only root can give. */
import { randomBytes } from "node:crypto";
import {
  chmodSync,
  chownSync,
  lstatSync,
  mkdirSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { dirname, join } from "node:path";
import Database from "better-sqlite3";
import { describe, expect, it, type TestContext } from "vitest";
import { keyFileSealing } from "../../src/stores/sealed-secrets.ts";
import { type SqliteDriver, sqliteStore } from "../../src/stores/sqlite.ts";
import { failureOf } from "../support/failure-of.ts";
import { makeInbox, makePath, open, refusalOf } from "./sqlite-place.ts";
import { makeKeyFile, SLOTS, secretsAt } from "./sqlite-secrets-place.ts";
import { contextOf, event, turn } from "./sqlite-turns.ts";

const OTHER = 54_321;
const THIRD = 54_322;

/** Only root can give files away, and act as another user. */
function needsRoot({ skip }: TestContext): void {
  if (process.geteuid?.() !== 0) skip("needs root, which can give files to other users");
}

/** Runs `work` as `user`, with real permission checks of the system. */
async function as<T>(user: number, work: () => T | Promise<T>, group = user): Promise<T> {
  process.setegid?.(group);
  process.seteuid?.(user);
  try {
    return await work();
  } finally {
    process.seteuid?.(0);
    process.setegid?.(0);
  }
}

const unsafe = (message: unknown = expect.anything()) => ({ code: "unsafe_location", message });

/** A path of an inbox in a directory of `user`. */
function pathOf(user: number): string {
  const path = makePath();
  chmodSync(dirname(path), 0o755);
  chownSync(dirname(path), user, user);
  return path;
}

describe.skipIf(process.platform === "win32")("a database", () => {
  it("of another user is refused before it is opened, with the fix; also for an operator and for secrets", async (context) => {
    needsRoot(context);
    const path = await makeInbox();
    chownSync(path, OTHER, OTHER);
    const message = /belongs to the user with id 54321.*run "chown 0 .*inbox\.db", or run the process as user 54321/;
    const refused = unsafe(expect.stringMatching(message));
    expect(await refusalOf(path)).toMatchObject(refused);
    expect(await refusalOf(path, "recorded")).toMatchObject(refused);
    expect(await failureOf(secretsAt(path).read("inbound"))).toMatchObject(refused);
    chownSync(path, 0, 0);
    await open(sqliteStore(path));
  });

  it("of root is opened by any user who may write to it, one of this user by this user, and one of a third by nobody else", async (context) => {
    needsRoot(context);
    const path = pathOf(OTHER);
    await as(OTHER, () => makeInbox(path));
    expect(statSync(path)).toMatchObject({ uid: OTHER });
    await as(OTHER, () => makeInbox(path));
    chownSync(path, THIRD, OTHER);
    chmodSync(path, 0o640);
    expect(await as(OTHER, () => refusalOf(path))).toMatchObject(unsafe());
    // Root's, and only to be read by this user: the owner is accepted, and SQLite says the rest.
    chownSync(path, 0, OTHER);
    expect(await as(OTHER, () => refusalOf(path))).toMatchObject({ code: "store_unavailable" });
  });

  it("behind a link is the file that the link leads to: of another user it is refused, one's own is opened", async (context) => {
    needsRoot(context);
    const target = await makeInbox();
    const link = makePath();
    symlinkSync(target, link);
    await makeInbox(link);
    expect(lstatSync(link).isSymbolicLink()).toBe(true);
    chownSync(target, OTHER, OTHER);
    expect(await refusalOf(link)).toMatchObject(unsafe(expect.stringContaining(target)));
    expect(await refusalOf(link, "recorded")).toMatchObject(unsafe());
  });

  it("behind a link is refused in a directory where anyone can replace it, and where there is nothing", async () => {
    const target = await makeInbox();
    const link = makePath();
    symlinkSync(target, link);
    chmodSync(dirname(target), 0o777);
    expect(await refusalOf(link)).toMatchObject({ message: expect.stringContaining(`chmod o-w ${dirname(target)}`) });
    rmSync(target);
    expect(await refusalOf(link)).toMatchObject(
      unsafe(expect.stringContaining("is a link to a file that does not exist")),
    );
  });

  it.each([0o622, 0o602, 0o660, 0o666])("that others can write (mode %o) is refused, with the fix", async (mode) => {
    const path = await makeInbox();
    chmodSync(path, mode);
    const refused = unsafe(expect.stringContaining(`chmod go-w ${path}`));
    expect(await refusalOf(path)).toMatchObject(refused);
    expect(await refusalOf(path, "recorded")).toMatchObject(refused);
    chmodSync(path, mode & ~0o022);
    await open(sqliteStore(path));
  });

  it.each(["-wal", "-shm", "-journal"])(
    "beside a planted %s is refused: SQLite would take over what it finds there",
    async (companion) => {
      const path = await makeInbox();
      writeFileSync(`${path}${companion}`, "");
      chmodSync(`${path}${companion}`, 0o666);
      expect(await refusalOf(path)).toMatchObject(unsafe(expect.stringContaining(`${path}${companion}`)));
    },
  );

  it("that an application made with umask 0002 is opened where the user has a group alone, and nowhere else", async (context) => {
    needsRoot(context);
    const path = pathOf(OTHER);
    await as(OTHER, () => makeInbox(path));
    chmodSync(path, 0o664);
    await as(OTHER, () => makeInbox(path));
    chownSync(path, OTHER, THIRD);
    expect(await as(OTHER, () => refusalOf(path))).toMatchObject(unsafe());
  });

  it("on a volume with Kubernetes' fsGroup is opened, although the group can write there, with a warning", async (context) => {
    needsRoot(context);
    const path = pathOf(0);
    await makeInbox(path);
    chownSync(dirname(path), 0, THIRD);
    chownSync(path, OTHER, THIRD);
    chmodSync(dirname(path), 0o2775);
    chmodSync(path, 0o660);
    const warnings: unknown[] = [];
    const logger = { ...contextOf().logger, warn: (fields: object) => void warnings.push(fields) };
    const opened = async () => (await open(sqliteStore(path), { logger })).close();
    await as(OTHER, opened, THIRD);
    expect(warnings).toContainEqual(expect.objectContaining({ code: "file_mode", mode: "660" }));
    // Without the setgid bit the group's right is nobody's plan.
    chmodSync(dirname(path), 0o775);
    expect(await as(OTHER, () => refusalOf(path), THIRD)).toMatchObject(unsafe());
  });

  it("that is replaced while it is opened is closed again and refused", async () => {
    const path = await makeInbox();
    const driver = class extends Database {
      override pragma(source: string, options?: Database.PragmaOptions): unknown {
        if (source.startsWith("auto_vacuum")) {
          renameSync(path, `${path}.moved`);
          writeFileSync(path, "", { mode: 0o600 });
        }
        return super.pragma(source, options);
      }
    } as unknown as SqliteDriver;
    const refused = await failureOf(sqliteStore(path, { driver }).open(contextOf()));
    expect(refused).toMatchObject(unsafe(expect.stringContaining("was replaced")));
  });

  it("that this process makes is its owner's alone from the first moment, whatever the umask", async () => {
    const seen: number[] = [];
    const driver = class extends Database {
      constructor(file: string, options?: Database.Options) {
        seen.push(statSync(file).mode & 0o777);
        super(file, options);
      }
    } as unknown as SqliteDriver;
    const path = makePath();
    const before = process.umask(0);
    try {
      const store = await open(sqliteStore(path, { driver }));
      await store.step(turn({ accepts: [event("m")] }));
    } finally {
      process.umask(before);
    }
    expect(seen).toEqual([0o600]);
    for (const file of [path, `${path}-wal`, `${path}-shm`]) expect(statSync(file).mode & 0o777).toBe(0o600);
  });
});

describe.skipIf(process.platform === "win32")("a key file", () => {
  const KEY = randomBytes(32).toString("hex");
  const sealing = (file: string) => failureOf((async () => keyFileSealing(file))());

  /** As the kubelet mounts a Secret: links to a directory of this version, whose files belong to root. */
  function mounted(mode: number): string {
    const folder = dirname(makePath());
    chmodSync(folder, 0o755);
    mkdirSync(join(folder, "..2026_11_25"));
    const file = join(folder, "..2026_11_25", "webhook.key");
    writeFileSync(file, KEY);
    chmodSync(file, mode);
    chownSync(file, 0, OTHER);
    symlinkSync("..2026_11_25", join(folder, "..data"));
    symlinkSync(join("..data", "webhook.key"), join(folder, "webhook.key"));
    return join(folder, "webhook.key");
  }

  it.for([0o440, 0o640, 0o040])(
    "that Kubernetes or Docker mounts (link, root's, mode %o) is read by a user of its group",
    async (mode, context) => {
      needsRoot(context);
      const file = mounted(mode);
      const plain = await as(OTHER, async () => {
        const { seal, open: unseal } = keyFileSealing(file);
        return unseal(await seal(Buffer.from("text"), "a"), "a");
      });
      expect(Buffer.from(plain).toString()).toBe("text");
    },
  );

  it.for([0o444, 0o644])(
    "that is mounted for all to read (mode %o) is refused, with what to set",
    async (mode, context) => {
      needsRoot(context);
      const file = mounted(mode);
      expect(await as(OTHER, () => sealing(file))).toMatchObject(
        unsafe(expect.stringMatching(/defaultMode: 0440.*mode: 0440/)),
      );
    },
  );

  it("of another user is refused, also behind a link and for root", async (context) => {
    needsRoot(context);
    const file = makeKeyFile(makePath(), KEY);
    const link = makePath();
    symlinkSync(file, link);
    chownSync(file, OTHER, OTHER);
    for (const path of [file, link]) {
      expect(await sealing(path)).toMatchObject({
        code: "unsafe_location",
        message: expect.stringContaining(`run "chown 0 ${path}"`),
        fields: { option: "keyFile" },
      });
    }
  });

  it("of this user, who is not root, may not be read by its group", async (context) => {
    needsRoot(context);
    const file = makeKeyFile(makePath(), KEY, 0o640);
    chmodSync(dirname(file), 0o755);
    chownSync(file, OTHER, OTHER);
    expect(await as(OTHER, () => sealing(file))).toMatchObject({ message: expect.stringContaining("chmod 600") });
    chmodSync(file, 0o400);
    await as(OTHER, () => keyFileSealing(file));
  });

  it.each([0o620, 0o602])("that others can write (mode %o) is refused", async (mode) => {
    const file = makeKeyFile(makePath(), KEY, mode);
    expect(await sealing(file)).toMatchObject(unsafe(expect.stringContaining("chmod go-w")));
  });

  it("that this user may not read names the group, and not how to make another one", async (context) => {
    needsRoot(context);
    const file = mounted(0o400);
    const refused = await as(OTHER, () => sealing(file));
    expect(refused).toMatchObject({ code: "invalid_option", message: expect.stringContaining("fsGroup") });
    expect(String(refused)).not.toContain("openssl");
  });

  it("opens the secrets of a receiver that runs as another user", async (context) => {
    needsRoot(context);
    const path = pathOf(OTHER);
    const keyFile = mounted(0o440);
    const stored = await as(OTHER, async () => {
      const secrets = secretsAt(path, { keyFile });
      await secrets.write("inbound", SLOTS, 0);
      return secrets.read("inbound");
    });
    expect(stored).toEqual({ ...SLOTS, revision: 1 });
  });
});
