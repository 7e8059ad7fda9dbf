/** The story of `oncehook demo`, chapter by chapter: a first day with the service, and what goes wrong on it. */
import { arrivalAgainstHandling, nothingLost, nothingTold } from "./ending.ts";
import { customerAnswers, joinSendsToOutcomes, sendToFourRecipients } from "./messages.ts";
import { handlerThrowsOnce, receiverIsDown } from "./mishaps.ts";
import type { Part, Plot } from "./plot.ts";
import type { Report } from "./report.ts";
import { rotateDuringTraffic } from "./rotation.ts";
import { tokenWhoamiNumbers, webhooksWithOurOwnSecret } from "./set-up.ts";
import type { Stage } from "./stage.ts";

export async function tellStory(stage: Stage, report: Report): Promise<void> {
  report.chapter("The service, an application and its webhooks, in one process");
  report.say(`service       ${stage.emulator.url} (the emulator)`);
  report.say(`application   ${stage.application.webhookUrl}`);
  report.say(`inbox         ${stage.inboxPath}`);
  const account = await tokenWhoamiNumbers(stage, report);
  const plot: Plot = { stage, report, ...account, cast: new Map<Part, string>() };
  await webhooksWithOurOwnSecret(plot);
  await sendToFourRecipients(plot);
  await receiverIsDown(plot);
  await joinSendsToOutcomes(plot);
  await handlerThrowsOnce(plot);
  await rotateDuringTraffic(plot);
  await customerAnswers(plot);
  await arrivalAgainstHandling(plot);
  await nothingLost(plot);
  await nothingTold(plot);
}
