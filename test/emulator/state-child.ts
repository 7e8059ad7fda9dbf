/** An emulator in a process of its own, for tests that kill it: prints its address and credentials, then serves until then. */
import { createEmulator } from "../../src/emulator/index.ts";

const [state = "", deliveryUrl = ""] = process.argv.slice(2);
const { url, clientId, clientSecret } = await createEmulator({ state, deliveryUrl, lifecycle: "instant" });
process.stdout.write(`${JSON.stringify({ url, clientId, clientSecret })}\n`);
