/** A process that does one run and sends its outcome. */
import type { Answer } from "./programme.ts";
import { type Run, run } from "./run.ts";

const answer = (message: Answer) => process.send?.(message, () => process.disconnect());

try {
  answer({ outcome: await run(JSON.parse(process.argv[2] ?? "") as Run) });
} catch (error) {
  answer({ error: error instanceof Error ? (error.stack ?? error.message) : String(error) });
}
