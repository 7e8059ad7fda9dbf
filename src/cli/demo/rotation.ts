/** The chapter about a new secret: replaced while messages are on their way, without a refused delivery or a restart. */
import { sleep, systemClock } from "../../internal/clock.ts";
import { rotateSecret } from "../../rotation/index.ts";
import { isOutcome, LIFETIME_MS, type Plot, sendOne } from "./plot.ts";

/** Between two messages, of real time and of the service's. */
const PACE_MS = 25;
const SECOND_MS = 1_000;
/** Far more than it takes. */
const MOST_MESSAGES = 300;

export async function rotateDuringTraffic(plot: Plot): Promise<void> {
  const { stage, report, apiClientId } = plot;
  const { client, secrets, emulator, application } = stage;
  const { receiver } = application;
  report.chapter("A new secret during traffic");
  const since = emulator.clock.now();
  let isRotated = false;
  const rotation = rotateSecret({ client, kind: "delivery", secrets, logger: stage.log }).then((result) => {
    isRotated = true;
    return result;
  });
  const isPreviousUsed = () => (receiver.counters["slot:previous"] ?? 0) > 0;
  const traffic = sendUntil(plot, () => isRotated && isPreviousUsed());
  const [{ receivers }, messageIds] = await Promise.all([rotation, traffic]);
  await Promise.all(messageIds.map((messageId) => receiver.waitFor({ apiClientId, messageId }, isOutcome)));

  report.check(receivers === 1, "the receiver had the new secret before the service got it");
  const statuses = emulator.control.attempts({ since, limit: 10_000 }).map(({ status }) => status);
  const taken = statuses.filter((status) => status === 200).length;
  report.check(
    taken === statuses.length && taken > 0,
    `${taken} of ${statuses.length} deliveries meanwhile were taken`,
  );
  report.check(isPreviousUsed(), "the old secret still counts, while the service may sign with either");
}

/** Sends one message after the other, and moves the service's time with each. */
async function sendUntil(plot: Plot, isEnough: () => boolean): Promise<string[]> {
  const { clock } = plot.stage.emulator;
  const messageIds: string[] = [];
  while (!isEnough() && messageIds.length < MOST_MESSAGES) {
    messageIds.push(await sendOne(plot, `traffic-${messageIds.length + 1}`));
    await clock.advance(SECOND_MS);
    await sleep(systemClock, PACE_MS);
  }
  await clock.advance(LIFETIME_MS);
  return messageIds;
}
