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

/** The type of the file system a directory lies on. */
export type FileSystemType = (directory: string) => number;

const fileSystemType: FileSystemType = (directory) => statfsSync(directory).type;

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
      `sqliteStore() takes the path of a file, such as "data/inbox.db". For an inbox in memory use memoryStore() of oncehook/memory.`,
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
  // Some systems give the number as a signed one.
  const fileSystem = process.platform === "linux" ? UNSAFE_FILE_SYSTEMS.get(typeOf(directory) >>> 0) : undefined;
  if (fileSystem !== undefined) {
    throw unsafe(
      `${directory} is on ${fileSystem}, where SQLite's locks cannot be trusted: put the inbox on a local disk.`,
    );
  }
  const file = join(directory, basename(path));
  createPrivately(file);
  return realpathSync(file);
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
