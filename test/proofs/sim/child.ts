/** A process that runs a stretch of seeds and sends what they came to. */
import { answerWith } from "../apart.ts";
import { stretch } from "./stretch.ts";

await answerWith(stretch);
