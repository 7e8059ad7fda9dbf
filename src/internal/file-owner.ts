/** Checks who can change a file that holds secrets or messages: only the user of this process and root may. */

/** The part of a file's status that the check reads. */
export interface FileOwner {
  readonly uid: number;
  readonly mode: number;
}

/** The bits of a mode with which the group, and everyone else, can write. */
export const GROUP_WRITES = 0o020;
const OTHERS_WRITE = 0o002;

/**
 * Says what is wrong with the owner or the mode of the file at `path`, and how to fix it; null when nothing is. Read permission is not
 * checked. On Windows, which has no such owners and modes, always null.
 *
 * @param what - the subject of the sentence: `The key file`
 * @param allowed - bits of the mode that are accepted although others can write with them
 */
export function ownerProblem(what: string, path: string, { uid, mode }: FileOwner, allowed = 0): string | null {
  const user = process.geteuid?.();
  if (user === undefined) return null;
  if (uid !== user && uid !== 0) {
    return `${what} ${path} belongs to the user with id ${uid}, who can change it, but this process runs as ${user}: run "chown ${user} ${path}", or run the process as user ${uid}.`;
  }
  const excess = mode & (GROUP_WRITES | OTHERS_WRITE) & ~allowed;
  if (excess === 0) return null;
  return `${what} ${path} can be changed by others than its owner (mode ${octal(mode)}): run "chmod go-w ${path}".`;
}

/** The permissions of a mode as `chmod` takes them. */
export function octal(mode: number): string {
  return (mode & 0o777).toString(8).padStart(3, "0");
}
