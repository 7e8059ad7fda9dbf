/** The sender of a soak, in a process of its own: lifecycles of many messages mixed, some twice, some poisonous, flaky, or signed by nobody. */
import { lifecycle, seededRandom, shuffled } from "../../src/tools/testing/index.ts";
import { type Delivery, deliveryOf, requestOf, Sender } from "./sender.ts";
import { Line } from "./soak-line.ts";

export interface Orders {
  readonly port: number;
  /** Deliveries a second; null: as many as are answered. */
  readonly perSecond: number | null;
  /** Deliveries; somewhat more are sent, so that no message is left without its end. */
  readonly count: number;
  /** The wall clock of the day. */
  readonly aheadMs: number;
  /** Part of the messages' ids. */
  readonly day: number;
}

/** What became of what was sent. */
export interface Sent {
  readonly sent: readonly string[];
  readonly forged: readonly string[];
  readonly acknowledged: readonly string[];
  /** Forged ones that were answered with 401. */
  readonly refused: number;
  /** Other answers than 200 to a signed delivery and 401 to a forged one. */
  readonly wrong: readonly string[];
  /** Answers, those to repeats among them. */
  readonly answered: number;
  /** From the first delivery to the last answer, ms. */
  readonly tookMs: number;
}

const LINES = 64;
/** Messages whose events are mixed. */
const TOGETHER = 100;
const REPEATED = 0.05;
/** In this order among the messages that are mixed; all others are ordinary. */
const SORTS = ["failing", "flaky", "forged"];

const random = seededRandom(20_251_122);
let lines: readonly Line[] = [];
let messages = 0;

export async function send({ port, perSecond, count, aheadMs, day }: Orders): Promise<Sent> {
  if (lines.length === 0) lines = await Promise.all(Array.from({ length: LINES }, () => Line.open(port)));
  const free = [...lines];
  let begun = 0;
  const sender = new Sender({
    ...{ parallel: LINES, againAfterMs: null, ...(perSecond !== null && { everyMs: 1_000 / perSecond }) },
    next() {
      const mixed = begun < count ? mixture(day, aheadMs) : [];
      begun += mixed.length;
      return mixed;
    },
    async deliver(delivery) {
      const line = free.pop() as Line;
      const { headers, body } = requestOf(delivery, Date.now() + aheadMs);
      const status = await line.send(headers, body);
      free.push(line);
      return { status, outcome: "" };
    },
  });
  const startedAt = performance.now();
  await sender.run();
  const { sent, forged, acknowledged, refused, answers } = sender;
  const wrong = [...sender.wrong([200]), ...answers.filter(({ status }) => status === 0).map(() => "no answer")];
  return {
    ...{ sent, forged, acknowledged: [...acknowledged], refused, wrong, tookMs: performance.now() - startedAt },
    answered: answers.filter(({ status }) => status !== 0).length,
  };
}

function mixture(day: number, aheadMs: number): readonly Delivery[] {
  const fresh = Array.from({ length: TOGETHER }, (_, index) => {
    const sort = SORTS[index] ?? "msg";
    const ending = random() < 0.1 ? "failed" : "delivery";
    const events = lifecycle({
      ...{ messageId: `${sort}-${day}-${++messages}`, occurredAt: Date.now() + aheadMs, ending },
    });
    return events.map((event) => deliveryOf(event, sort === "forged"));
  }).flat();
  const repeated = fresh.filter(() => random() < REPEATED).map((delivery) => ({ ...delivery, copy: 3 }));
  return shuffled([...fresh, ...repeated], random);
}
