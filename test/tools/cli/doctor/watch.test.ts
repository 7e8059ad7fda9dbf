/** `oncehook doctor --watch`: the alerts of an inbox, printed. */
import { describe, expect, it } from "vitest";
import type { InboxStore } from "../../../../src/index.ts";
import { type Alert, openInbox, PermanentError } from "../../../../src/index.ts";
import { sqliteStore } from "../../../../src/stores/sqlite.ts";
import { doctorCommand } from "../../../../src/tools/cli/doctor/command.ts";
import { alertsOf } from "../../../../src/tools/cli/doctor/watch.ts";
import { MINUTE, newInboxFile, sqliteBench } from "../../../receiver/bench.ts";
import { inbound } from "../../../receiver/events.ts";
import { runHere } from "../here.ts";
import { dead } from "../inbox-place.ts";
import { Running } from "../running.ts";
import { filled } from "./cases.ts";

describe("alertsOf()", () => {
  it("says what holds already, what ends, and once that the inbox cannot be read", async () => {
    const file = newInboxFile();
    const bench = sqliteBench({}, file);
    bench.receiver.onAny(() => {
      throw new PermanentError("no");
    });
    await bench.deliver(inbound());
    await bench.receiver.drain();
    const { clock } = bench;
    const inbox = await openInbox({ store: sqliteStore(file) as InboxStore<never>, clock });
    let failures = 0;
    let isDown = false;
    const stats = () => (isDown ? Promise.reject(new Error("down")) : inbox.stats());
    const stop = new AbortController();
    const said: Alert[] = [];
    const onFailure = () => {
      failures++;
    };
    const watching = (async () => {
      const alerts = alertsOf({ rules: inbox.rules, stats }, { onFailure, signal: stop.signal, clock });
      for await (const alert of alerts) said.push(alert);
    })();
    await clock.advance(0);
    expect(said).toMatchObject([{ condition: "deadLetters", status: "began", value: 1, receiver: "default" }]);
    isDown = true;
    await clock.advance(MINUTE);
    expect(failures).toBe(1);
    isDown = false;
    const [event] = (await inbox.find({ states: ["dead"] })).items;
    await inbox.discard(event?.id ?? 0, { by: "test" });
    await clock.advance(2 * MINUTE);
    expect(said.slice(1)).toMatchObject([{ condition: "deadLetters", status: "ended", episode: said[0]?.episode }]);
    // No receiver with a worker has reported since the watch began.
    await clock.advance(10 * MINUTE);
    expect(said.slice(2)).toMatchObject([{ condition: "workerMissing", status: "began" }]);
    stop.abort();
    await watching;
    await inbox.close();
  });
});

describe("oncehook doctor --watch", () => {
  const LINE =
    /^\d{4}-\d\d-\d\d \d\d:\d\d:\d\dZ {2}began {2}Dead letters in the inbox: 1 \(limit 1\)\. Run "oncehook .* \(deadLetters\)\n$/;

  it.each([
    ["a line", [], "SIGINT", LINE, "Watching the inbox. Ctrl-C ends it.\n"],
    ["JSON", ["--json"], "SIGTERM", /^\{.*"condition":"deadLetters".*\}\n$/, ""],
  ] as const)("prints alerts as %s, and ends with 0 at a signal", async (_, args, signal, pattern, errors) => {
    const { flags } = await filled(dead);
    const watching = new Running(["doctor", "--store", flags?.store ?? "", "--watch", ...args]);
    const [line] = await watching.printed(/.*\n/);
    expect(line).toMatch(pattern);
    watching.signal(signal);
    expect(await watching.exit).toMatchObject({ code: 0, errors });
  });

  it.each([
    [["--watch"], 2, /^error: --watch takes --store: it watches an inbox\.\n$/],
    [["--store", "missing.db", "--watch"], 2, /^error: There is no inbox at /],
  ])("says of %j why it cannot watch", async (args, expected, message) => {
    const { code, errors } = await runHere(doctorCommand(), args);
    expect([code, errors]).toEqual([expected, expect.stringMatching(message)]);
  });
});
