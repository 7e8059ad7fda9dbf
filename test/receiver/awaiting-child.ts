/** A process in which nothing runs but what it waits for. */
import { createReceiver, OncehookError } from "../../src/index.ts";
import { sqliteStore } from "../../src/stores/sqlite.ts";

const [mode = "", path = ""] = process.argv.slice(2);

const receiver = createReceiver({ secrets: "a-webhook-signing-secret-of-32-b", store: sqliteStore(path) });
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
} else {
  try {
    await receiver.waitFor({ apiClientId: "a", messageId: "m" }, "message.queued", { timeoutMs: 300 });
  } catch (error) {
    process.stdout.write(error instanceof OncehookError ? error.code : "another error");
  }
}
