/** The file of a SQLite inbox, looked at without opening it: where it lies, who may read it, and the room beside it. */
import { statfsSync, statSync } from "node:fs";
import { dirname } from "node:path";
import { cautionsAbout, type FileSystemType } from "../../stores/sqlite/location.ts";
import { type Finding, ok, problem, sentence, warning } from "./finding.ts";

const MIB = 1024 * 1024;
/** The default of `minFreeBytes`: with less, nothing is accepted. */
const LEAST_FREE = 64 * MIB;
const LITTLE_FREE = 1024 * MIB;

/** What is asked of the operating system; a test says something else. */
export interface Disk {
  readonly freeBytes: (folder: string) => number;
  readonly typeOf?: FileSystemType;
}

const thisDisk: Disk = {
  freeBytes(folder) {
    const { bavail, bsize } = statfsSync(folder);
    return bavail * bsize;
  },
};

/** Nothing where there is no file: opening it tells that better. */
export function fileFindings(file: string, disk: Disk = thisDisk): Finding[] {
  if (statSync(file, { throwIfNoEntry: false }) === undefined) return [];
  const cautions = cautionsAbout(file, disk.typeOf).map(({ code, message }) => {
    const at = message.lastIndexOf(": ");
    return warning(code, `${message.slice(0, at)}.`, sentence(message.slice(at + 2)));
  });
  return [...cautions, roomFinding(dirname(file), disk)];
}

function roomFinding(folder: string, { freeBytes }: Disk): Finding {
  const free = freeBytes(folder);
  const what = `${Math.floor(free / MIB).toLocaleString("en-US")} MiB are free in ${folder}`;
  const fix = "Free some, or prune: oncehook inbox prune.";
  if (free < LEAST_FREE) return problem("disk_full", `${what}; below 64 MiB every delivery gets 503.`, fix);
  if (free < LITTLE_FREE) return warning("disk_low", `${what}; below 64 MiB every delivery gets 503.`, fix);
  return ok("disk", `${what}.`);
}
