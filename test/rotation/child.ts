/** A process that makes one trial and sends its outcome. */
import { answerWith } from "../proofs/apart.ts";
import { rotateUnderLoad } from "./trial.ts";

await answerWith(rotateUnderLoad);
