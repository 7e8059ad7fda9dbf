/** A process that makes one trial and sends its outcome. */
import type { Answer } from "./programme.ts";
import { rotateUnderLoad, type Trial } from "./trial.ts";

const answer = (message: Answer) => process.send?.(message, () => process.disconnect());

try {
  answer({ outcome: await rotateUnderLoad(JSON.parse(process.argv[2] ?? "") as Trial) });
} catch (error) {
  answer({ error: error instanceof Error ? (error.stack ?? error.message) : String(error) });
}
