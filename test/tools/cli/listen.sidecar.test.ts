/** The short form of `npm run prove -- sidecar`. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it, onTestFinished } from "vitest";
import type { KnownEvent } from "../../../src/index.ts";
import { httpPublisher } from "../../../src/tools/forward/index.ts";
import { messageOf } from "../../../src/tools/forward/publisher.ts";
import { fixtures } from "../../../src/tools/testing/index.ts";
import { feedSidecar, problemsOf } from "../../proofs/sidecar-feeding.ts";
import { PythonApplication, pythonIsMissing } from "./python-application.ts";

/** Some ten seconds where nothing else is at work. */
const FEEDING_MS = 90_000;

describe("oncehook listen --forward-to", () => {
  it("feeds an application in Python every event once, in order, though it was killed meanwhile (RCV-6, RCV-7)", {
    tags: "full",
    timeout: FEEDING_MS,
  }, async (context) => {
    const missing = pythonIsMissing();
    if (missing !== null) context.skip(missing);
    // Fewer messages fail than make the worker pause.
    const fed = await feedSidecar({ messages: 60, disturbed: 12, killedAtWork: false, limitMs: FEEDING_MS - 10_000 });
    expect(problemsOf(fed)).toEqual([]);
    expect([fed.events, fed.deliveries > fed.events]).toEqual([180, true]);
  });
});

const SECRET = "a-forwarding-secret-of-32-bytes-";

describe("the application in Python", () => {
  it("keeps what comes after a later event of its message, and its state as it is (RCV-7)", async (context) => {
    const missing = pythonIsMissing();
    if (missing !== null) context.skip(missing);
    const folder = mkdtempSync(join(tmpdir(), "oncehook-python-"));
    const application = new PythonApplication(folder, SECRET);
    onTestFinished(async () => {
      await application.end("SIGKILL");
      rmSync(folder, { recursive: true });
    });
    await application.start();
    const publisher = httpPublisher({ url: application.url, secret: SECRET });
    const { signal } = new AbortController();
    const post = (event: KnownEvent, replay: boolean) => {
      const circumstances = { signal, traceparent: null, attempt: 1, replay, late: false, missing: null };
      return publisher.publish(messageOf(event, Buffer.from(JSON.stringify(event)), circumstances));
    };
    await post(fixtures.sent(), false);
    await post(fixtures.queued(), true);
    expect([application.count(), application.states()]).toEqual([2, ["message.sent"]]);
    await post(fixtures.delivery(), true);
    expect([application.count(), application.states()]).toEqual([3, ["message.delivery"]]);
  });
});
