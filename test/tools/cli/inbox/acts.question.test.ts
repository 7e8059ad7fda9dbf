/** What `oncehook inbox` does after it asked: what it told of, and nothing that came since. */
import { PassThrough } from "node:stream";
import { describe, expect, it, onTestFinished, vi } from "vitest";
import type { InboxStore } from "../../../../src/inbox/store.ts";
import { systemClock } from "../../../../src/internal/clock.ts";
import { InboxOperator } from "../../../../src/receiver/operator.ts";
import { sqliteStore } from "../../../../src/stores/sqlite.ts";
import { contextOf, turn } from "../../../stores/sqlite-turns.ts";
import { rowsOf } from "../here.ts";
import { inbox, inStore, newInbox } from "../inbox-own.ts";
import { dead, handle, outboundEvent } from "../inbox-place.ts";

/** Somebody at a terminal, who answers once `meanwhile` has happened. */
function answering(answer: string, meanwhile: () => Promise<void>): void {
  const keyboard = Object.assign(new PassThrough(), { isTTY: true });
  // Read from when the question is asked.
  keyboard.once("resume", () => void meanwhile().then(() => keyboard.end(`${answer}\n`)));
  const input = vi.spyOn(process, "stdin", "get").mockReturnValue(keyboard as never);
  onTestFinished(() => input.mockRestore());
}

describe("oncehook inbox replay, discard", () => {
  it.each([["replay"], ["discard"]])("%s: nothing that was accepted while the question stood", async (verb) => {
    const path = await newInbox((store) => handle(store, [outboundEvent("queued", "msg_1")], dead));
    const done = verb === "replay" ? "replayed" : "discarded";
    answering("y", () => inStore(path, (store) => handle(store, [outboundEvent("queued", "msg_2")], dead)));
    const asked = await inbox(path, verb, "--state", "dead", "--json");
    expect(asked.errors).toContain(`Would ${verb} 1 event.`);
    expect([asked.code, rowsOf(asked)]).toMatchObject([0, [{ [done]: 1, dryRun: false }]]);
    const left = await inbox(path, "ls", "--state", "dead", "--json");
    expect(rowsOf(left).map(({ lane }) => lane)).toEqual(["msg_2"]);
  });

  it("replay: what was accepted by a clock that is ahead of this machine's", async () => {
    const path = await newInbox(async () => {});
    const store = sqliteStore(path) as InboxStore<never>;
    await store.open(contextOf({ clock: { ...systemClock, now: () => Date.now() + 120_000 } }));
    await handle(store, [outboundEvent("queued", "msg_1")], dead);
    await store.close();
    answering("y", async () => {});
    const asked = await inbox(path, "replay", "--all", "--json");
    expect([asked.code, rowsOf(asked)]).toMatchObject([0, [{ replayed: 1 }]]);
  });

  it("do nothing where there was nothing to ask about", async () => {
    const path = await newInbox(async (store) => {
      await store.step(turn<never>({ accepts: [outboundEvent("queued", "msg_1")] }));
    });
    answering("y", async () => {});
    const { replayAll } = InboxOperator.prototype;
    const looking = vi.spyOn(InboxOperator.prototype, "replayAll").mockImplementation(async function (
      this: InboxOperator,
      query,
      options,
    ) {
      const counts = await replayAll.call(this, query, options);
      // It dies as soon as it was looked for.
      if (options?.dryRun) await inStore(path, (store) => handle(store, [], dead));
      return counts;
    });
    onTestFinished(() => looking.mockRestore());
    const asked = await inbox(path, "replay", "--all", "--json");
    expect([asked.code, asked.errors, rowsOf(asked)]).toMatchObject([0, "", [{ replayed: 0, dryRun: false }]]);
  });
});
