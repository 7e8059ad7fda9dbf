/** `npm run demo`: the service, a client of it and a receiver in one process, from the first token to a rotated secret. */
import { Report } from "./report.ts";
import { onStage } from "./stage.ts";
import { tellStory } from "./story.ts";

const startedAt = performance.now();
const report = new Report(console.log);
try {
  await onStage((stage) => tellStory(stage, report));
} catch (error) {
  report.check(false, "the story was told to its end");
  console.error(error);
}
process.exitCode = report.end((performance.now() - startedAt) / 1_000);
