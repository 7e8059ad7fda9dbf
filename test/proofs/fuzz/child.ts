/** A process that does one share and sends its outcome. */
import { answerWith } from "../apart.ts";
import { fuzzShare } from "./share.ts";

await answerWith(fuzzShare);
