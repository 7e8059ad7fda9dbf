/** A process in which nothing runs but what it waits for. */
import { createReceiver, OncehookError } from "../../src/index.ts";
import { sqliteStore } from "../../src/stores/sqlite.ts";

const [mode = "", path = ""] = process.argv.slice(2);

const real = sqliteStore(path);
let failures = mode === "drain" ? 1 : 0;
const step: typeof real.step = (turn) =>
  turn.settles.length > 0 && failures-- > 0 ? Promise.reject(new Error("down for a moment")) : real.step(turn);
const receiver = createReceiver({
  ...{ secrets: "a-webhook-signing-secret-of-32-b", store: { ...real, step } },
  logger: { debug() {}, info() {}, warn() {}, error() {} },
});
receiver.onAny(() => {});
if (mode === "work") {
  await receiver.start();
  process.stdout.write("started");
  // Fires only in a process that stays by itself.
  setTimeout(() => receiver.stop().then(() => process.stdout.write(", stopped")), 300).unref();
} else if (mode === "start") {
  await receiver.start();
  process.stdout.write("started");
  await receiver.stop();
} else if (mode === "drain") {
  await receiver.drain().catch(({ message }) => process.stdout.write(message));
} else {
  try {
    await receiver.waitFor({ apiClientId: "a", messageId: "m" }, "message.queued", { timeoutMs: 300 });
  } catch (error) {
    process.stdout.write(error instanceof OncehookError ? error.code : "another error");
  }
}
