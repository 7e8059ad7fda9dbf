/** `npm run prove -- outages`: the examples, unchanged, over outages of 1, 10 and 70 minutes, under every profile. */
import { PROFILE_NAMES, type ProfileName } from "../../src/messaging/emulator/index.ts";
import { SqliteApplication } from "../next/sqlite-application.ts";
import { countsOf, findings } from "./ledger.ts";
import { NextProcess } from "./outages-nextjs.ts";
import { ExampleProcess } from "./outages-processes.ts";
import { type Restartable, type Survival, surviveOutages } from "./outages-survive.ts";
import type { Programme, Proof } from "./programme.ts";

const SHORT = 100;
const FULL = 1_000;

type Receiver = Restartable & { dispose(): Promise<void> };

/** Short: Express and Fastify with 100 messages each. Full: Next.js as well, with 1,000. */
export const outages: Programme = {
  name: "outages",
  what: "no event lost, handled twice or out of order while the receiver is down for 1, 10 and 70 minutes",
  async run({ full, say }): Promise<Proof> {
    const count = full ? FULL : SHORT;
    const problems: string[] = [];
    let events = 0;
    const prove = async (name: string, create: () => Promise<Receiver>) => {
      for (const profile of PROFILE_NAMES) {
        const survival = await surviving(await create(), profile, count);
        events += survival.events;
        problems.push(...problemsOf(survival).map((problem) => `${name}, ${profile}: ${problem}`));
        say(`${name.padEnd(8)} ${profile.padEnd(8)} ${lineOf(survival)}`);
      }
    };
    for (const name of ["express", "fastify"] as const) await prove(name, () => ExampleProcess.create(name));
    if (full) await withNextjs((application) => prove("nextjs", () => NextProcess.create(application)));
    return { count: events, unit: "events", problems };
  },
};

async function surviving(receiver: Receiver, profile: ProfileName, count: number): Promise<Survival> {
  try {
    return await surviveOutages(receiver, profile, count);
  } finally {
    await receiver.dispose();
  }
}

async function withNextjs(use: (application: SqliteApplication) => Promise<void>): Promise<void> {
  const application = new SqliteApplication();
  try {
    await application.install();
    await application.build();
    await use(application);
  } finally {
    await application.dispose();
  }
}

function problemsOf(survival: Survival): string[] {
  const { late, failedAttempts, messages } = survival;
  const problems = findings(survival);
  if (late > 0) problems.push(`${late} late`);
  if (failedAttempts < messages) problems.push(`only ${failedAttempts} attempts failed: there were no outages`);
  return problems;
}

function lineOf(survival: Survival): string {
  const { messages, events, attempts, failedAttempts, late } = survival;
  const traffic = `${messages} messages, ${events} events, ${attempts} attempts (${failedAttempts} failed)`;
  return `${traffic}: ${countsOf(survival)}, ${late} late`;
}
