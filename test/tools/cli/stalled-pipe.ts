/** A pipe whose reader takes nothing unless it is told to. */
import { execFileSync } from "node:child_process";
import { closeSync, constants, openSync, readSync, writeSync } from "node:fs";
import { join } from "node:path";
import { onTestFinished } from "vitest";
import { newFolder } from "./place.ts";

export interface StalledPipe {
  /** Both of its ends. */
  readonly fd: number;
  /** Fills it up: what is written from now on stays with the writer. */
  fill(): void;
  /** What is in it, which leaves room for as much. */
  read(): string;
}

/** Gone with the test. */
export function openStalledPipe(): StalledPipe {
  const path = join(newFolder(), "pipe");
  execFileSync("mkfifo", [path]);
  const fd = openSync(path, constants.O_RDWR | constants.O_NONBLOCK);
  onTestFinished(() => closeSync(fd));
  const bytes = Buffer.alloc(65_536, ".");
  return {
    fd,
    fill() {
      // To the last byte: a pipe with little room refuses a block as a whole.
      for (const size of [4_096, 1]) untilRefused(() => writeSync(fd, bytes, 0, size));
    },
    read() {
      let text = "";
      untilRefused(() => {
        text += bytes.toString("latin1", 0, readSync(fd, bytes));
      });
      return text;
    },
  };
}

/** Repeats it until the system says that it would have to wait. */
function untilRefused(step: () => unknown): void {
  try {
    for (;;) step();
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "EAGAIN") throw error;
  }
}
