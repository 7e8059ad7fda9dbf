/** `receiver.waitFor()`: by any process, before or after, every way in which it ends otherwise, and what it refuses and says. */
import { describe, expect, it } from "vitest";
import {
  type OncehookError,
  PermanentError,
  type Receiver,
  SetupError,
  StoreError,
  type Wanted,
  type WebhookEvent,
} from "../../src/index.ts";
import {
  type BenchOptions,
  deferred,
  HOUR,
  idleTurns,
  MINUTE,
  memoryBench,
  newInboxFile,
  sqliteBench,
} from "./bench.ts";
import { inbound, outbound } from "./events.ts";

const message = { apiClientId: "apc_1", messageId: "msg_1" };

describe("waitFor()", () => {
  it("resolves with an event that was handled already", async () => {
    const { deliver, receiver } = memoryBench();
    receiver.onAny(() => {});
    await deliver(outbound("queued"));
    await deliver(inbound());
    expect(await receiver.waitFor(message, "message.queued")).toMatchObject({ sequence: 1 });
    const wanted = (event: WebhookEvent) => event.eventType === "message.inbound";
    const found = await receiver.waitFor({ apiClientId: "apc_1", messageId: "msg_in_1" }, wanted);
    expect(found).toMatchObject({ data: { body: "Yes please" } });
  });

  it("gives the event in its own type, by name and by a function that narrows", async () => {
    const { deliver, receiver } = memoryBench();
    receiver.onAny(() => {});
    await deliver(outbound("queued"));
    const queued = await receiver.waitFor(message, "message.queued");
    expect(queued.data.status).toBe("QUEUED");
    const either = await receiver.waitFor(
      message,
      (event) => event.eventType === "message.queued" || event.eventType === "message.failed",
    );
    expect(either.sequence.toFixed()).toBe("1");
    const named: WebhookEvent = await receiver.waitFor(message, queued.eventType.toString());
    // @ts-expect-error nothing is known of an event of any type
    expect(named.data.status).toBe("QUEUED");
  });

  it("waits for what is handled later, not merely accepted", async () => {
    const { deliver, receiver, clock } = memoryBench();
    const work = deferred();
    await receiver.on("message.queued", () => work.promise).start();
    let found: WebhookEvent | null = null;
    void receiver.waitFor(message, "message.queued").then((event) => {
      found = event;
    });
    const answer = deliver(outbound("queued"));
    await clock.advance(5_000);
    expect(found).toBeNull();
    work.resolve();
    await answer;
    await clock.advance(250);
    expect(found).toMatchObject({ eventType: "message.queued" });
  });

  it("asks ten times a second at first, and once a second when it has waited for long", async () => {
    const { receiver, clock, store } = memoryBench();
    let looks = 0;
    const lane = store.lane.bind(store);
    store.lane = (ref) => {
      looks += 1;
      return lane(ref);
    };
    const waiting = receiver.waitFor(message, "message.queued", { timeoutMs: 3_600_000 });
    waiting.catch(() => {});
    const looksIn = async (ms: number) => {
      looks = 0;
      await clock.advance(ms);
      return looks / 2; // Each asks for the message as an outbound and as an inbound one.
    };
    await idleTurns();
    expect(await looksIn(1_000)).toBe(10);
    await clock.advance(29_000);
    expect(await looksIn(60_000)).toBe(60);
  });

  it("is no reason to be told that nobody works: the process that takes deliveries is", async () => {
    const file = newInboxFile();
    const web = sqliteBench({}, file);
    const waits = sqliteBench({ clock: web.clock }, file);
    web.receiver.onAny(() => {}).onLate(() => {});
    expect((await web.deliver(outbound("queued"))).status).toBe(200);
    const waiting = expect(
      waits.receiver.waitFor(message, "message.queued", { timeoutMs: 70_000 }),
    ).rejects.toMatchObject({ code: "wait_timeout" });
    await idleTurns();
    await web.clock.advance(70_000);
    await waiting;
    expect(web.codes()).toEqual(["worker_not_running"]);
    expect(waits.codes()).toEqual([]);
  });

  it("resolves for what another process handled on the same file", async () => {
    const file = newInboxFile();
    const web = sqliteBench({}, file);
    const worker = sqliteBench({ clock: web.clock }, file);
    worker.receiver.onAny(() => {});
    const waiting = web.receiver.waitFor(message, "message.queued", { timeoutMs: 60_000 });
    expect((await web.deliver(outbound("queued"))).status).toBe(200);
    await worker.receiver.start();
    let found = false;
    void waiting.then(() => {
      found = true;
    });
    for (let step = 0; step < 100 && !found; step++) await web.clock.advance(100);
    expect(await waiting).toMatchObject({ messageId: "msg_1" });
  });

  const dies = () => {
    throw new PermanentError("never");
  };

  it.each<[string, string, BenchOptions<never>, Partial<Record<"queued" | "delivery", () => void>>]>([
    ["dead", "permanent_failure", {}, { queued: dies }],
    ["unhandled", "no error", {}, { delivery() {} }],
    ["late", "no error", { gapWait: "eager" }, { queued() {}, delivery() {} }],
    ["filtered", "no error", { filter: ({ eventType }) => eventType === "message.delivery" }, { queued() {} }],
  ])(
    "rejects on an event that ended as %s, with its code and without its error's text",
    async (state, code, options, on) => {
      const { deliver, receiver } = memoryBench(options);
      for (const [kind, handler] of Object.entries(on)) receiver.on(`message.${kind}` as "message.queued", handler);
      if (state === "late") await deliver(outbound("delivery"));
      await deliver(outbound("queued"));
      await receiver.drain();
      const waiting = receiver.waitFor(message, "message.queued");
      await expect(waiting).rejects.toMatchObject({
        ...{ code: "dead_lettered", message: `The awaited event ended as "${state}" (${code}).` },
        fields: { state, eventId: state === "late" ? 2 : 1 },
      });
    },
  );

  it("rejects on an event that was discarded", async () => {
    const { deliver, receiver } = sqliteBench();
    await deliver(outbound("queued"));
    await receiver.inbox.discard(1);
    const fields = { state: "discarded", eventId: 1 };
    await expect(receiver.waitFor(message, "message.queued")).rejects.toMatchObject({ code: "dead_lettered", fields });
  });

  it("rejects when its time is over, after one look at least", async () => {
    const { receiver, clock, deliver } = memoryBench();
    receiver.on(["message.queued", "message.sent"], () => {});
    await expect(receiver.waitFor(message, "message.sent", { timeoutMs: 0 })).rejects.toMatchObject({
      code: "wait_timeout",
      fields: { awaited: "msg_1" },
    });
    await clock.advance(60_000);
    let code: unknown = null;
    receiver.waitFor(message, "message.sent").catch((error) => {
      code = error.code;
    });
    await idleTurns();
    await clock.advance(29_999);
    expect(code).toBeNull();
    await clock.advance(1);
    expect(code).toBe("wait_timeout");
    await deliver(outbound("queued"));
    await expect(receiver.waitFor(message, "message.queued", { timeoutMs: 0 })).resolves.toBeDefined();
  });

  it("rejects with the signal's reason, at once, before and while it waits", async () => {
    const { receiver } = memoryBench();
    const reason = new Error("No longer wanted.");
    await expect(receiver.waitFor(message, "x", { signal: AbortSignal.abort(reason) })).rejects.toBe(reason);
    const controller = new AbortController();
    const waiting = receiver.waitFor(message, "x", { signal: controller.signal });
    const rejected = expect(waiting).rejects.toBe(reason);
    await idleTurns();
    controller.abort(reason);
    await rejected;
  });

  it("rejects when the receiver stops", async () => {
    const { receiver, clock } = memoryBench();
    const rejected = expect(receiver.waitFor(message, "x")).rejects.toBeInstanceOf(StoreError);
    await idleTurns();
    await receiver.stop();
    await clock.advance(100);
    await rejected;
  });

  it("passes over what it can not read any more: pruned bodies and other types", async () => {
    const { deliver, receiver, clock } = memoryBench({ retention: { handledBodiesMs: 0 } });
    receiver.onAny(() => {});
    await deliver(outbound("queued"));
    clock.set(clock.now() + 60_000);
    await deliver(outbound("sent"));
    await receiver.drain();
    await expect(receiver.waitFor(message, "message.queued", { timeoutMs: 0 })).rejects.toThrow("was not handled");
    await expect(receiver.waitFor(message, "message.sent", { timeoutMs: 0 })).resolves.toBeDefined();
    await expect(receiver.waitFor(message, () => false, { timeoutMs: 0 })).rejects.toThrow("was not handled");
  });
});

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
    expect(error.fields).toEqual({ awaited: "msg_1", state: "missing", laneStatus: null, eventTypes: "" });
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
    const { receiver, deliver, clock } = sqliteBench();
    receiver.onAny(() => {});
    await deliver(outbound("queued"));
    // Also when the wall clock was set back since.
    for (const now of [clock.now(), clock.now() - HOUR]) {
      clock.set(now);
      const error = await timeout(receiver, "message.queued");
      expect(error.message).toMatch(/stored, and no receiver of this inbox handles it. Call start\(\) or drain\(\)/);
      expect(error.fields).toMatchObject({ state: "pending", laneStatus: "ready", eventTypes: "message.queued" });
    }
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
