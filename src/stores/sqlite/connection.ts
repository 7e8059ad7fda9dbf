/** Opens the inbox's own connection with the settings that durability hangs on, and reads them back. */
import {
  closeSync,
  existsSync,
  lstatSync,
  openSync,
  readFileSync,
  realpathSync,
  type Stats,
  statfsSync,
  statSync,
} from "node:fs";
import { basename, dirname, join, resolve } from "node:path";
import { SetupError, StoreError } from "../../errors.ts";
import { GROUP_WRITES, octal, ownerProblem } from "../../internal/file-owner.ts";
import { connect, type SqliteDatabase, type SqliteDriver } from "../../internal/sqlite-driver.ts";

/** The driver waits for a lock by blocking the event loop, so it waits hardly at all; we wait on the clock. */
const DRIVER_BUSY_TIMEOUT_MS = 5;

/** A backstop: the log is copied into the file while idle. At the default of 1,000 pages a copy falls into every few batches. */
const AUTOCHECKPOINT_PAGES = 16_000;

/** @throws SetupError `unsafe_location` */
export function openConnection(driver: SqliteDriver, file: string): SqliteDatabase {
  const checked = checkFiles(file);
  const db = connect(driver, file, { timeout: DRIVER_BUSY_TIMEOUT_MS, fileMustExist: true });
  try {
    // Only a file without tables takes this setting; an inbox added to an application's file keeps that file's.
    db.pragma("auto_vacuum = INCREMENTAL");
    db.pragma("journal_mode = WAL");
    // After journal_mode: going to WAL lowers it to NORMAL, where a power cut loses what was acknowledged.
    db.pragma("synchronous = FULL");
    if (process.platform === "darwin") {
      // There an fsync alone does not reach the disk: neither the log's, nor the file's when the log is copied into it.
      db.pragma("fullfsync = 1");
      db.pragma("checkpoint_fullfsync = 1");
    }
    db.pragma("temp_store = MEMORY");
    db.pragma(`wal_autocheckpoint = ${AUTOCHECKPOINT_PAGES}`);
    db.pragma("secure_delete = FAST");
    db.pragma("foreign_keys = OFF");
    checkSame(file, checked);
  } catch (error) {
    db.close();
    throw error;
  }
  return db;
}

/** Throws `not_durable` unless a commit on `db` survives a power cut. */
export function checkDurable(db: SqliteDatabase): void {
  const synchronous = db.pragma("synchronous", { simple: true });
  const journal = db.pragma("journal_mode", { simple: true });
  if ((synchronous === 2 || synchronous === 3) && journal === "wal") return;
  const message = `The inbox is not durable: synchronous reads ${synchronous} (must be 2) and journal_mode ${journal} (must be wal). Look for code that sets them.`;
  throw new StoreError("not_durable", message);
}

// Makes sure that the inbox lies where a file lock and an fsync mean something, and that nobody else can change it.

/** Where SQLite's locks or its shared memory do not work, by the magic number of Linux's `statfs`. */
const UNSAFE_FILE_SYSTEMS: ReadonlyMap<number, string> = new Map([
  [0x6969, "NFS"],
  [0x517b, "SMB"],
  [0xff534d42, "SMB"],
  [0xfe534d42, "SMB"],
  [0x01021997, "9p"],
  [0x65735546, "FUSE"],
]);

/** What is on them ends with the machine, or with the container whose own layer it is. */
const EPHEMERAL_FILE_SYSTEMS: ReadonlyMap<number, string> = new Map([
  [0x01021994, "tmpfs"],
  [0x858458f6, "ramfs"],
  [0x794c7630, "overlayfs"],
]);

/** The type of the file system a path lies on. */
export type FileSystemType = (path: string) => number;

const fileSystemType: FileSystemType = (path) => statfsSync(path).type;

/** Looks a path's file system up; only Linux has these numbers. */
function lookUp(names: ReadonlyMap<number, string>, path: string, typeOf: FileSystemType): string | undefined {
  // Some systems give the number as a signed one.
  return process.platform === "linux" ? names.get(typeOf(path) >>> 0) : undefined;
}

/** Checks that `path` names a file; absolute, so that nothing takes it for a URI. */
export function checkPath(path: unknown): string {
  if (
    typeof path !== "string" ||
    path === "" ||
    path === ":memory:" ||
    path.startsWith("file:") ||
    path.includes("\0")
  ) {
    throw new SetupError(
      "unsafe_location",
      `SQLite takes the path of a file, such as "data/inbox.db". For an inbox in memory use memoryStore() of oncehook/memory, for secrets memorySecrets() of oncehook/testing.`,
    );
  }
  return resolve(path);
}

/**
 * Refuses directories and file systems where an inbox is not safe, and makes the file, readable by its owner only. A link is followed:
 * what is checked and opened is the file that it leads to.
 *
 * @returns the path with links resolved
 * @throws SetupError `unsafe_location`
 */
export function prepareFile(path: string, typeOf: FileSystemType = fileSystemType): string {
  const directory = realDirectory(dirname(path));
  checkDirectory(directory);
  const file = targetOf(join(directory, basename(path)));
  if (dirname(file) !== directory) checkDirectory(dirname(file));
  const fileSystem = lookUp(UNSAFE_FILE_SYSTEMS, dirname(file), typeOf);
  if (fileSystem !== undefined) {
    throw unsafe(
      `${dirname(file)} is on ${fileSystem}, where SQLite's locks cannot be trusted: put the inbox on a local disk.`,
    );
  }
  createPrivately(file);
  refuseDirectory(file);
  return file;
}

/** Where others could put another file in the place of a checked one. In a sticky directory only a file's owner can. */
function checkDirectory(directory: string): void {
  const { mode } = statSync(directory);
  if (process.platform !== "win32" && (mode & 0o002) !== 0 && (mode & 0o1000) === 0) {
    throw unsafe(`Anyone can replace files in ${directory}: run "chmod o-w ${directory}", or use another directory.`);
  }
}

/** The file that a link leads to; any other path as it is. */
function targetOf(path: string): string {
  if (lstatSync(path, { throwIfNoEntry: false })?.isSymbolicLink() !== true) return path;
  try {
    return realpathSync(path);
  } catch (cause) {
    throw unsafe(`${path} is a link to a file that does not exist: make that file, or remove the link.`, cause);
  }
}

/** What tells a file from one that was put in its place. */
interface FileIdentity {
  readonly dev: number;
  readonly ino: number;
}

/** SQLite takes over what it finds in these, when it opens the file next to them. */
const COMPANIONS = ["-wal", "-shm", "-journal"];

/**
 * Refuses a database that another user owns or others can change, and one whose `-wal` another path or a new container would not find, with
 * the files next to it. By path: to open the file and close it would end the locks that SQLite holds on it in this process (POSIX).
 *
 * @param file - with links resolved
 * @throws SetupError `unsafe_location`
 */
export function checkFiles(file: string): FileIdentity {
  const stat = statSync(file);
  const allowed = isPrivateGroup(stat) || isGroupsDirectory(dirname(file), stat) ? GROUP_WRITES : 0;
  const mounts = mountPoints();
  for (const suffix of ["", ...COMPANIONS]) {
    const path = `${file}${suffix}`;
    // SQLite opens no link in place of a companion.
    const own = suffix === "" ? stat : lstatSync(path, { throwIfNoEntry: false });
    if (own === undefined) continue;
    if (own.isSymbolicLink())
      throw unsafe(`${path} is a link, which SQLite does not follow there: move the file itself.`);
    const problem = ownerProblem("The database", path, own, allowed);
    if (problem !== null) throw new SetupError("unsafe_location", problem, { fields: { mode: octal(own.mode) } });
    if (!own.isDirectory()) checkIsAlone(path, own, mounts);
  }
  refuseWithoutLog(file);
  return { dev: stat.dev, ino: stat.ino };
}

/**
 * The newest events are only in the `-wal` next to the file. A file with two names has two of them, and that of a file which is mounted by
 * itself stays behind in the container.
 */
function checkIsAlone(path: string, { nlink }: Stats, mounts: ReadonlySet<string>): void {
  if (mounts.has(path)) {
    throw unsafe(
      `${path} is mounted as a single file, so the files that SQLite puts next to it, with the newest events, would be lost with the container: mount the directory ${dirname(path)} instead.`,
    );
  }
  if (nlink > 1) {
    throw unsafe(
      `${path} has ${nlink} names (hard links), and SQLite keeps the newest events next to each name apart: stop every receiver, and remove the names that no receiver used. "find / -xdev -samefile ${path}" lists them.`,
    );
  }
}

/**
 * SQLite makes `-wal` before `-shm` and removes it after it. Where only `-shm` is left, a running process may hold the log that was
 * removed, and a second one under this name would damage the database.
 */
function refuseWithoutLog(file: string): void {
  const index = () => statSync(`${file}-shm`, { throwIfNoEntry: false })?.ino;
  const before = index();
  // Looked at twice, because another process may open or close the database meanwhile.
  if (before === undefined || existsSync(`${file}-wal`) || index() !== before) return;
  throw unsafe(
    `${file}-wal was removed, with the newest events, but ${file}-shm was not: stop every receiver, and put ${file}-wal back. Remove ${file}-shm only to continue without these events.`,
  );
}

/** The paths at which something is mounted. Only Linux mounts single files; empty where that cannot be read. */
function mountPoints(): ReadonlySet<string> {
  try {
    const lines = readFileSync("/proc/self/mountinfo", "utf8").split("\n");
    // The fifth field; blanks and backslashes in it are octal.
    return new Set(lines.map((line) => (line.split(" ")[4] ?? "").replace(/\\([0-7]{3})/g, fromOctal)));
  } catch {
    return new Set();
  }
}

function fromOctal(_escape: string, digits: string): string {
  return String.fromCharCode(Number.parseInt(digits, 8));
}

/** @throws SetupError `unsafe_location` when the file at this path is not `opened`, or is not safe any more */
function checkSame(file: string, opened: FileIdentity): void {
  const { dev, ino } = checkFiles(file);
  if (dev === opened.dev && ino === opened.ino) return;
  throw unsafe(`The database ${file} was replaced while it was opened: find out which program does that.`);
}

/** Where each user has a group of the same number, files that an application makes are writable by that group (umask 0002). */
function isPrivateGroup({ uid, gid }: Stats): boolean {
  return gid === uid && uid !== 0;
}

/** Kubernetes' `fsGroup` makes all files of a volume writable by a group of the process, in directories that have the setgid bit. */
function isGroupsDirectory(directory: string, { gid }: Stats): boolean {
  const { mode, gid: group } = statSync(directory);
  const isOurs = gid === process.getegid?.() || process.getgroups?.().includes(gid) === true;
  return (mode & 0o2000) !== 0 && group === gid && isOurs;
}

/** SQLite's own word for it is that it cannot open it. @throws SetupError `unsafe_location` */
export function refuseDirectory(path: string): void {
  if (!statSync(path).isDirectory()) return;
  throw unsafe(`${path} is a directory: give the path of a file in it, such as ${join(path, "inbox.db")}.`);
}

/** Something about the file that the application may mean so, but should hear of at open. */
interface Caution {
  readonly code: "ephemeral_disk" | "other_device" | "file_mode";
  readonly message: string;
  /** Octal. */
  readonly mode?: string;
}

/** What to warn of. `file` exists, with links resolved. */
export function cautionsAbout(file: string, typeOf: FileSystemType = fileSystemType): Caution[] {
  const cautions: Caution[] = [];
  // The newest events are in the file next to it.
  const fileSystem =
    lookUp(EPHEMERAL_FILE_SYSTEMS, file, typeOf) ?? lookUp(EPHEMERAL_FILE_SYSTEMS, dirname(file), typeOf);
  if (fileSystem !== undefined) {
    const message = `The inbox ${file} is on ${fileSystem}, which a restart or a new container may empty, accepted events and all: put it on a disk that stays, such as a mounted volume.`;
    cautions.push({ code: "ephemeral_disk", message });
  }
  const { dev, ...stat } = statSync(file);
  if (dev !== statSync(dirname(file)).dev) {
    const message = `The inbox ${file} is on another device than its directory, so it and the files that SQLite puts next to it, with the newest events, can be lost separately: mount the directory instead of the file.`;
    cautions.push({ code: "other_device", message });
  }
  const mode = stat.mode & 0o777;
  if (process.platform !== "win32" && (mode & 0o077) !== 0) {
    const message = `Others than its owner may open the inbox ${file}, with its texts and numbers: run "chmod 600 ${file}*".`;
    cautions.push({ code: "file_mode", mode: octal(mode), message });
  }
  return cautions;
}

function realDirectory(directory: string): string {
  try {
    return realpathSync(directory);
  } catch (cause) {
    throw unsafe(`The directory ${directory} cannot be opened: create it first.`, cause);
  }
}

/** SQLite gives `-wal` and `-shm` the mode of the main file, so it must have the right one before the driver opens it. */
function createPrivately(file: string): void {
  try {
    closeSync(openSync(file, "wx", 0o600));
  } catch (error) {
    if (error instanceof Error && "code" in error && error.code === "EEXIST") return;
    throw unsafe(`The inbox ${file} cannot be created: check the directory's owner and permissions.`, error);
  }
}

function unsafe(message: string, cause?: unknown): SetupError {
  return new SetupError("unsafe_location", message, cause === undefined ? {} : { cause });
}
