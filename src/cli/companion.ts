/** A command run beside the emulator, through the shell and in a process group of its own, which is ended as a whole. */
import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { type Clock, sleep, systemClock } from "../internal/clock.ts";
import { codeOf } from "./signals.ts";

/** How long what is left of the group may take to end by itself after SIGTERM. */
const GRACE_MS = 5_000;
const LOOK_EVERY_MS = 20;

export interface Companion {
  /** Resolves with its exit code (128 + the number of the signal that ended it) once nothing of its group runs any more. */
  readonly ended: Promise<number>;
  /** Sends a signal to the whole group; harmless when it is gone. */
  signal(signal: NodeJS.Signals): void;
}

/** Starts `command` with `environment` added to this process's own, on this process's standard streams. */
export function startCompanion(
  command: string,
  environment: Readonly<Record<string, string>>,
  clock: Clock = systemClock,
): Companion {
  const child = spawn(isOneProgramme(command) ? `exec ${command}` : command, {
    shell: true,
    // A group of its own: the shell may have started others, and a signal to the shell alone would leave them.
    detached: true,
    stdio: "inherit",
    env: { ...process.env, ...environment },
  });
  const { pid } = child;
  const signal = (name: NodeJS.Signals | 0) => pid !== undefined && signalGroup(pid, name);
  // However this process ends, unless by a signal that it does not hear.
  const atExit = () => signal("SIGKILL");
  process.once("exit", atExit);
  const ended = async () => {
    const [code, name] = (await once(child, "exit")) as [number | null, NodeJS.Signals | null];
    await endRest(signal, clock);
    process.off("exit", atExit);
    return name === null ? (code ?? 0) : codeOf(name);
  };
  return { ended: ended(), signal };
}

/**
 * Whether the shell has nothing to do but to run one programme. That takes the shell's place then, because some shells stay above it,
 * die of the first signal, and leave nobody who knows its exit code. What looks like more is more, whether quoted or not.
 */
function isOneProgramme(command: string): boolean {
  const operators = /[;|()`\n]|(?<![<>])&/;
  const [, quoted, word = quoted] = /^\s*(?:"([^"$\\]+)"|([\w./+@-]+))(?=\s|$)/.exec(command) ?? [];
  return word !== undefined && !operators.test(command) && isProgramme(word);
}

/** Whether the shell would run a word as a programme: it knows best which words are its own, and answers for the others with a path. */
function isProgramme(word: string): boolean {
  return spawnSync("/bin/sh", ["-c", 'command -v "$1"', "sh", word], { encoding: "utf8" }).stdout?.startsWith("/");
}

/** Ends what the shell left behind. */
async function endRest(signal: (name: NodeJS.Signals | 0) => boolean, clock: Clock): Promise<void> {
  signal("SIGTERM");
  const limit = clock.monotonic() + GRACE_MS;
  while (signal(0)) {
    if (clock.monotonic() >= limit) return void signal("SIGKILL");
    await sleep(clock, LOOK_EVERY_MS);
  }
}

/** Signals a process group; false when nothing of it is left. 0 only asks. */
function signalGroup(pid: number, signal: NodeJS.Signals | 0): boolean {
  try {
    return process.kill(-pid, signal);
  } catch {
    return false;
  }
}
