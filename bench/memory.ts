/** What a backlog takes of a receiver's memory: it lies in the file, so it should hardly be noticed. */
import { join } from "node:path";
import { fillInbox } from "./filled.ts";
import { inDirectory, type Served, takeTurns } from "./http.ts";
import { type Group, grouped, type Limit, row } from "./rows.ts";

const PENDING = 1_000_000;
const ROUNDS = { count: 3, requests: 16_000 };
const LIMIT: Limit = {
  name: "memory with 1,000,000 pending events, over idle",
  target: 150,
  bound: "at most",
  unit: "MiB",
};

/** The handlers never end, so that nothing of the backlog goes; the load comes on top of it. */
export const memoryGroup: Group = {
  names: [LIMIT.name],
  run: () =>
    inDirectory(async (directory) => {
      const full = join(directory, "full.db");
      await fillInbox(full, { handled: 0, parked: 0, due: PENDING, ids: "ordered" });
      const served = { route: "stuck", framework: "fastify" } as const satisfies Served;
      const [loaded, empty] = await takeTurns([{ ...served, inbox: full }, served], ROUNDS);
      if (loaded === undefined || empty === undefined) throw new Error("Not both were measured.");
      const [most, without, idle] = [loaded.memory, empty.memory, empty.idleMemory].map((mebibytes) =>
        mebibytes.toFixed(0),
      );
      const sent = grouped((ROUNDS.count + 1) * ROUNDS.requests);
      const detail = `${most} MiB at most while accepting ${sent} more; ${without} when these are all; ${idle} idle`;
      return [row(LIMIT, loaded.memory - empty.idleMemory, detail)];
    }),
};
