/** `npm run prove -- hosts`: the receiver in other people's frameworks, mounted as the guide says. */
import { inTurn, type Programme, type Proof, type Terms } from "../programme.ts";
import { CARELESS, prepareApps } from "./apps.ts";
import { startFunction, startServer } from "./hosts.ts";
import { TRIGGERS } from "./lambda-events.ts";
import { type Outcome, tryHost } from "./trial.ts";

/** Each waits for its store to be down for some seconds. */
const AT_ONCE = 4;

interface Subject {
  readonly name: string;
  run(rounds: number): Promise<Outcome>;
}

export const hosts: Programme = {
  name: "hosts",
  what: "NestJS, Koa, Hono, h3, hapi and AWS Lambda give each delivery the receiver's own answer, lose no event, and live on",
  async run({ full, say }: Terms): Promise<Proof> {
    const { servers, functions, problems } = prepareApps(say);
    if (problems.length > 0) return { count: 0, unit: "deliveries", problems };
    const found: string[] = [];
    let count = 0;
    const subjects = [...servers.map(server), ...functions.flatMap(triggered)];
    await inTurn(subjects, AT_ONCE, async ({ name, run }) => {
      const outcome = await run(full ? 25 : 2).catch(failed);
      count += outcome.count;
      say(`${name.padEnd(40)} ${outcome.count} deliveries: ${outcome.problems[0] ?? "nothing amiss"}`);
      found.push(...outcome.problems.map((problem) => `${name}: ${problem}`));
    });
    found.push(...(await unseen(say)));
    return { count, unit: `deliveries to ${subjects.length} hosts`, problems: found };
  },
};

const failed = (error: unknown): Outcome => ({ count: 0, problems: [`it did not come to an end: ${error}`] });

function server(name: string): Subject {
  const isBehindParser = name === "nestjs-controller" || name === "nestjs-passthrough";
  const start = (inbox: string) => startServer(name, inbox);
  return { name, run: (rounds) => tryHost(start, { rounds, isBehindParser, hasConnections: true }) };
}

function triggered(name: string): Subject[] {
  return TRIGGERS.map((trigger) => ({
    name: `${name}, ${trigger}`,
    run: (rounds) =>
      tryHost((inbox) => startFunction(name, inbox, trigger), { rounds, isBehindParser: false, hasConnections: false }),
  }));
}

/** The control: a Koa that is not told to wait answers in the receiver's place. */
async function unseen(say: Terms["say"]): Promise<string[]> {
  const start = (inbox: string) => startServer(CARELESS, inbox);
  const { problems } = await tryHost(start, { rounds: 1, isBehindParser: false, hasConnections: true });
  const told = ["while the store is down: 404", "the log says already_answered"];
  const missed = told.filter((words) => !problems.some((problem) => problem.includes(words)));
  say(`${CARELESS.padEnd(40)} ${problems.length} problems, as wished for`);
  return missed.map((words) => `a host that answers first was not seen: nothing says "${words}"`);
}
