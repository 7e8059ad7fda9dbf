/** The same by libfaketime: a real process behind HTTP, whose system clock jumps while deliveries come. */
import { existsSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { Subject } from "../disk/subject.ts";
import { breachesOf } from "../history.ts";
import { contentsOf } from "../sqlite-inbox.ts";
import type { Outcome } from "./injected.ts";
import type { Pattern } from "./patterns.ts";

const LIBRARY = "faketime/libfaketimeMT.so.1";
const SETTING_MS = 500;

/** The library's path; null where it is not installed. */
export function fakeTimeLibrary(): string | null {
  const folders = ["/usr/lib", "/usr/local/lib", "/usr/lib64"].filter((folder) => existsSync(folder));
  const places = folders.flatMap((folder) => [folder, ...readdirSync(folder).map((name) => join(folder, name))]);
  return places.map((place) => join(place, LIBRARY)).find((file) => existsSync(file)) ?? null;
}

export async function throughFakedPattern(pattern: Pattern, library: string): Promise<Outcome> {
  const folder = mkdtempSync(join(tmpdir(), "oncehook-faketime-"));
  const path = join(folder, "inbox.db");
  const control = join(folder, "time");
  const set = (aheadMs: number) => writeFileSync(control, `${aheadMs < 0 ? "-" : "+"}${Math.abs(aheadMs) / 1_000}s\n`);
  set(0);
  try {
    const subject = await Subject.start(
      { path, busyTimeoutMs: 1_000, answersFirst: false },
      // The monotonic clock goes on as it does when a machine's time is set.
      {
        ...{ LD_PRELOAD: library, FAKETIME_TIMESTAMP_FILE: control, FAKETIME_NO_CACHE: "1" },
        ...{ FAKETIME_DONT_FAKE_MONOTONIC: "1", DONT_FAKE_MONOTONIC: "1" },
      },
    );
    subject.begin();
    for (const aheadMs of [0, ...pattern.settings, 0]) {
      set(aheadMs);
      await sleep(SETTING_MS);
    }
    const unfinished = await subject.finish();
    const problems = [...unfinished, ...(await subject.stop())];
    const refused = subject.answers.filter(({ status }) => status === 401).length;
    // An hour or two ahead a timestamp may still be within its tolerance; years it is not.
    const mustRefuse = pattern.settings.some((aheadMs) => Math.abs(aheadMs) > 2 * 3_600_000);
    if (mustRefuse && refused === 0) problems.push("nothing was refused: the clock did not jump");
    const strange = subject.answers.filter(({ status }) => ![200, 401].includes(status));
    if (strange.length > 0)
      problems.push(`${strange.length} answers were ${[...new Set(strange.map(({ status }) => status))]}`);
    const { effects, stored } = contentsOf(path);
    const { sent, acknowledged } = subject;
    const known = { sent, forged: [], acknowledged, replayed: [], effects, stored };
    const breaches = breachesOf({ ...known, moment: "ended", everyHandlerWrites: true });
    return { breaches, problems, acknowledged: acknowledged.length, again: refused };
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}
