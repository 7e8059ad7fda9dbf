/** The last chapters: what arrived against what was handled, that nothing is missing, and that no secret was told. */
import { arrivalsOf, handledTwiceOf, isInOrder, type Life, lostOf, readLedger } from "./ledger.ts";
import { type Plot, RECIPIENTS, TEXTS } from "./plot.ts";

export async function arrivalAgainstHandling({ stage, report, cast }: Plot): Promise<void> {
  report.chapter("Arrival against handling, by sequence (✗: not taken, and tried again)");
  const lives = await readLedger(stage);
  const rows = [...cast].flatMap(([part, messageId]) => {
    const life = lives.find((one) => one.messageId === messageId);
    return life === undefined ? [] : [[messageId, arrivalsOf(life), life.handled.join(" "), part]];
  });
  report.table(["message", "arrived", "handled", ""], rows);
  report.say(`and ${lives.length - rows.length} more, sent during the rotation`);
}

export async function nothingLost({ stage, report }: Plot): Promise<void> {
  report.chapter("All messages");
  const lives = await readLedger(stage);
  const sum = (count: (life: Life) => number) => lives.reduce((total, life) => total + count(life), 0);
  const [told, lost, twice] = [sum((life) => life.told.length), sum(lostOf), sum(handledTwiceOf)];
  report.check(told > 0 && lost === 0, `${told - lost} of ${told} events were handled`);
  report.check(twice === 0, `${twice} were handled twice`);
  const ordered = lives.filter(isInOrder).length;
  report.check(ordered === lives.length, `${ordered} of ${lives.length} messages were handled in ascending sequence`);
  const { receiver } = stage.application;
  const { gauges, counters } = await receiver.inbox.stats();
  report.check(counters.duplicates > 0, `${counters.duplicates} deliveries were known already, and only counted`);
  report.check(gauges.pending + gauges.dead + gauges.quarantined === 0, "nothing waits for a retry or for a person");
}

/** Looks for what must not be told in all that was printed and logged. */
export async function nothingTold({ stage, report }: Plot): Promise<void> {
  const { emulator, secrets, log } = stage;
  const { tables } = emulator.control.exportState();
  const kinds = await Promise.all([secrets.read("delivery"), secrets.read("inbound")]);
  const webhookSecrets = kinds.flatMap((slots) => [
    slots?.current ?? [],
    slots?.previous.map(({ secret }) => secret) ?? [],
  ]);
  const tokens = Object.keys(tables.tokens ?? {});
  const people = [
    ...Object.values(RECIPIENTS),
    ...emulator.control.numbers().map(({ e164 }) => e164),
    ...Object.values(TEXTS),
  ];
  const untold = [emulator.clientSecret, ...webhookSecrets.flat(), ...tokens, ...people];
  const told = [...report.lines, ...log.lines].join("\n");
  report.check(
    tokens.length > 0 && !untold.some((text) => told.includes(text)),
    `none of ${untold.length} secrets, tokens, numbers and texts is in the output, or in the ${log.lines.length} lines of log`,
  );
}
