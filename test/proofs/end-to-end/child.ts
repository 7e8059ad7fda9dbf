/** A process that does one run and sends its outcome. */
import { answerWith } from "../apart.ts";
import { run } from "./run.ts";

await answerWith(run);
