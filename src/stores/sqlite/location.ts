/** Makes sure that the inbox lies where a file lock and an fsync mean something, and that only its owner can read it. */
import { closeSync, openSync, realpathSync, statfsSync, statSync } from "node:fs";
import { basename, dirname, join, resolve } from "node:path";
import { SetupError } from "../../errors.ts";

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
 * Refuses directories and file systems where an inbox is not safe, and makes the file, readable by its owner only.
 *
 * @returns the path with links resolved
 * @throws SetupError `unsafe_location`
 */
export function prepareFile(path: string, typeOf: FileSystemType = fileSystemType): string {
  const directory = realDirectory(dirname(path));
  const { mode } = statSync(directory);
  if (process.platform !== "win32" && (mode & 0o002) !== 0 && (mode & 0o1000) === 0) {
    throw unsafe(`Anyone can replace files in ${directory}: run "chmod o-w ${directory}", or use another directory.`);
  }
  const fileSystem = lookUp(UNSAFE_FILE_SYSTEMS, directory, typeOf);
  if (fileSystem !== undefined) {
    throw unsafe(
      `${directory} is on ${fileSystem}, where SQLite's locks cannot be trusted: put the inbox on a local disk.`,
    );
  }
  const file = join(directory, basename(path));
  createPrivately(file);
  refuseDirectory(file);
  return realpathSync(file);
}

/** SQLite's own word for it is that it cannot open it. @throws SetupError `unsafe_location` */
export function refuseDirectory(path: string): void {
  if (!statSync(path).isDirectory()) return;
  throw unsafe(`${path} is a directory: give the path of a file in it, such as ${join(path, "inbox.db")}.`);
}

/** Something about the file that the application may mean so, but should hear of at open. */
export interface Caution {
  readonly code: "ephemeral_disk" | "file_mode";
  readonly message: string;
  /** Octal. */
  readonly mode?: string;
}

/** What to warn of. `file` exists, with links resolved. */
export function cautionsAbout(file: string, typeOf: FileSystemType = fileSystemType): Caution[] {
  const cautions: Caution[] = [];
  const fileSystem = lookUp(EPHEMERAL_FILE_SYSTEMS, file, typeOf);
  if (fileSystem !== undefined) {
    const message = `The inbox ${file} is on ${fileSystem}, which a restart or a new container may empty, accepted events and all: put it on a disk that stays, such as a mounted volume.`;
    cautions.push({ code: "ephemeral_disk", message });
  }
  const mode = statSync(file).mode & 0o777;
  if (process.platform !== "win32" && (mode & 0o077) !== 0) {
    const message = `Others than its owner may open the inbox ${file}, with its texts and numbers: run "chmod 600 ${file}*".`;
    cautions.push({ code: "file_mode", mode: mode.toString(8), message });
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
