/** Where tests put the files that are written often, and whose durability is not what is tested. */
import { existsSync } from "node:fs";
import { tmpdir } from "node:os";

const IN_MEMORY = "/dev/shm";

/** A file system in memory is a real one without the wait for a disk. It is often small: give stores on it `minFreeBytes: 0`. */
export const MEMORY_DISK = existsSync(IN_MEMORY) ? IN_MEMORY : tmpdir();
