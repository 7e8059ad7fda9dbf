/** What `receiver.waitFor()` refuses, and what it says when its time is over. */
import { describe, expect, it } from "vitest";
import { type OncehookError, PermanentError, type Receiver, SetupError, type Wanted } from "../../src/index.ts";
import { HOUR, MINUTE, memoryBench, sqliteBench } from "./bench.ts";
import { outbound } from "./events.ts";

const message = { apiClientId: "apc_1", messageId: "msg_1" };
const never = { timeoutMs: 0 };

describe("the arguments of waitFor()", () => {
  it.each([
    ["message.delivered", "message.delivery"],
    ["message.send", "message.sent"],
    ["message.deliver", "message.delivery"],
    ["Message.Failed", "message.failed"],
    ["messages.queued", "message.queued"],
    ["message_inbound", "message.inbound"],
    ["delivery", "message.delivery"],
    ["QUEUED", "message.queued"],
  ])("refuses %s and names %s, as on() does", async (misspelt, meant) => {
    const { receiver } = memoryBench();
    const waiting = receiver.waitFor(message, misspelt, never);
    await expect(waiting).rejects.toThrow(`Did you mean "${meant}"?`);
    await expect(waiting).rejects.toBeInstanceOf(SetupError);
    await expect(waiting).rejects.toMatchObject({ code: "invalid_option", fields: { option: "wanted" } });
  });

  it.each([
    "message.read",
    "message.seen",
    "message.clicked",
    "message.delayed",
    "campaign.failed",
    "number.sent",
    "x",
  ])("takes %s, which the service may add (EVT-1, RCV-11)", async (type) => {
    const { receiver, deliver } = memoryBench();
    receiver.onUnknown(() => {});
    await expect(receiver.waitFor(message, type, never)).rejects.toMatchObject({ code: "wait_timeout" });
    await deliver(outbound("queued", { extra: { eventType: type } }));
    expect(await receiver.waitFor(message, type, never)).toMatchObject({ eventType: type });
  });

  const NO_TEXT = "must be a string that is not empty";
  const NO_TYPE = "must be an event type or a function";

  it.each<[unknown, unknown, string, string]>([
    [{ messageId: "msg_1" }, "message.sent", "ref.apiClientId", NO_TEXT],
    [{ apiClientId: "", messageId: "msg_1" }, "message.sent", "ref.apiClientId", NO_TEXT],
    [{ apiClientId: "apc_1", messageId: undefined }, "message.sent", "ref.messageId", NO_TEXT],
    [{ apiClientId: "apc_1", messageId: "" }, "message.sent", "ref.messageId", NO_TEXT],
    [{ apiClientId: "apc_1", messageId: 7 }, "message.sent", "ref.messageId", NO_TEXT],
    ["msg_1", "message.sent", "ref", "must be { apiClientId, messageId }"],
    [null, "message.sent", "ref", "must be { apiClientId, messageId }; it is null."],
    [message, undefined, "wanted", NO_TYPE],
    [message, null, "wanted", NO_TYPE],
    [message, "", "wanted", NO_TYPE],
    [message, 3, "wanted", `${NO_TYPE}; it is 3.`],
  ])("refuses the message %j and the wish %j", async (ref, wanted, option, says) => {
    const waiting = memoryBench().receiver.waitFor(ref as typeof message, wanted as Wanted, never);
    const refused = { code: "invalid_option", fields: { option }, message: expect.stringContaining(says) };
    await expect(waiting).rejects.toMatchObject(refused);
  });

  it("bounds the time, and names itself and the likely option when one is misspelt", async () => {
    const { receiver } = memoryBench();
    const misspelt = { timeout: 1 } as object;
    await expect(receiver.waitFor(message, "message.sent", misspelt)).rejects.toThrow(
      'waitFor has no option "timeout". Did you mean "timeoutMs"?',
    );
    await expect(receiver.waitFor(message, "message.sent", { timeoutMs: -1 })).rejects.toThrow(
      'Option "timeoutMs" must be a whole number from 0 to 86400000 ms; it is -1.',
    );
  });
});

describe("a wait whose time is over", () => {
  it("says that nothing of the message arrived, and where to look", async () => {
    const { receiver } = memoryBench();
    const error = await timeout(receiver, "message.delivery");
    expect(error.message).toMatch(/^The event was not handled within 0 ms: nothing of this message has arrived/);
    expect(error.fields).toEqual({ messageId: "msg_1", state: "missing", laneStatus: null, eventTypes: "" });
  });

  it("shows of unknown types only what looks like a name", async () => {
    const { receiver, deliver } = memoryBench();
    receiver.onAny(() => {});
    await deliver(outbound("queued", { extra: { eventType: "message.read" } }));
    await deliver(outbound("sent", { extra: { eventType: "to +14155550101: hello" } }));
    const error = await timeout(receiver, "message.delivery");
    expect(error.fields).toMatchObject({ eventTypes: "message.read, (unnamed)" });
    expect(error.message).not.toContain("+1415");
  });

  it("says start() or drain() when the event is stored and nobody handles it", async () => {
    const { receiver, deliver } = sqliteBench();
    receiver.onAny(() => {});
    await deliver(outbound("queued"));
    const error = await timeout(receiver, "message.queued");
    expect(error.message).toMatch(/stored, and no receiver of this inbox handles it. Call start\(\) or drain\(\)/);
    expect(error.fields).toMatchObject({ state: "pending", laneStatus: "ready", eventTypes: "message.queued" });
  });

  it("says so too from the very millisecond at which the gap before it is over and nobody has come back", async () => {
    const { receiver, deliver, clock } = sqliteBench();
    receiver.onAny(() => {});
    const stored = clock.now();
    await deliver(outbound("sent"));
    clock.set(stored + 22 * MINUTE - 1);
    const waits = await timeout(receiver, "message.sent");
    expect(waits.message).toContain("waits for a missing event before it");
    expect(waits.fields).toMatchObject({ state: "pending", laneStatus: "gap" });
    clock.set(stored + 22 * MINUTE);
    expect((await timeout(receiver, "message.sent")).message).toContain("Call start() or drain()");
  });

  it("says so too of a ready event when the wall clock was set back since", async () => {
    const { receiver, deliver, clock } = sqliteBench();
    receiver.onAny(() => {});
    await deliver(outbound("queued"));
    clock.set(clock.now() - HOUR);
    const error = await timeout(receiver, "message.queued");
    expect(error.message).toContain("Call start() or drain()");
    expect(error.fields).toMatchObject({ laneStatus: "ready" });
  });

  it("names the events of the message that did arrive, ten types at most", async () => {
    const { receiver, deliver } = memoryBench();
    receiver.onAny(() => {});
    const types = Array.from({ length: 11 }, (_, index) => `message.step${index}`);
    for (const [index, eventType] of types.entries()) {
      await deliver(outbound("queued", { extra: { eventType, sequence: index + 1 } }));
    }
    const error = await timeout(receiver, "message.delivery");
    const eventTypes = types.slice(0, 10).join(", ");
    expect(error.message).toContain(`only ${eventTypes} of this message arrived`);
    expect(error.fields).toMatchObject({ state: "missing", eventTypes });
  });

  it("says that its handler failed and is tried again", async () => {
    const { receiver, deliver } = sqliteBench();
    receiver.onAny(() => {
      throw new Error("not today");
    });
    await deliver(outbound("queued"));
    await receiver.drain();
    const error = await timeout(receiver, "message.queued");
    expect(error.message).toContain("A handler failed and will be retried");
    expect(error.message).not.toContain("not today");
    expect(error.fields).toMatchObject({ state: "pending", laneStatus: "backoff" });
  });

  it("says that a handler is at work", async () => {
    const { receiver, deliver } = sqliteBench();
    let seen: OncehookError | null = null;
    receiver.onAny(async () => {
      seen = await timeout(receiver, "message.queued");
    });
    await deliver(outbound("queued"));
    await receiver.drain();
    expect(seen).toMatchObject({ fields: { laneStatus: "leased" } });
    expect((seen as OncehookError | null)?.message).toContain("a handler runs for it");
  });

  it("says that a dead letter before it blocks the message", async () => {
    const { receiver, deliver } = sqliteBench({ onDead: "block" });
    receiver.onAny(() => {
      throw new PermanentError("no such order");
    });
    await deliver(outbound("queued"));
    await deliver(outbound("sent"));
    await receiver.drain();
    const error = await timeout(receiver, "message.sent");
    expect(error.message).toContain("receiver.inbox.unblock()");
    expect(error.fields).toMatchObject({ state: "pending", laneStatus: "blocked" });
  });
});

async function timeout<Tx>(receiver: Receiver<Tx>, wanted: Wanted): Promise<OncehookError> {
  const error = await receiver.waitFor(message, wanted, never).then(
    () => null,
    (failure: OncehookError) => failure,
  );
  expect(error).toMatchObject({ code: "wait_timeout" });
  return error as OncehookError;
}
