/** Checks that only this process's user and root can change a file that holds secrets or messages. */

/** The fields of a file's status that the check reads. */
export interface FileOwner {
  readonly uid: number;
  readonly mode: number;
}

/** Mode bits that let the group and everyone else write. */
export const GROUP_WRITES = 0o020;
const OTHERS_WRITE = 0o002;

/**
 * Describes what is wrong with the owner or mode of the file at `path` and how to fix it; null when nothing is wrong. Read permission is not
 * checked. Always null on Windows, which has no such owners and modes.
 *
 * @param what - the subject of the sentence: `The key file`
 * @param allowed - mode bits to accept although they let others write
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

/** The permission bits of a mode, in the form `chmod` takes. */
export function octal(mode: number): string {
  return (mode & 0o777).toString(8).padStart(3, "0");
}
