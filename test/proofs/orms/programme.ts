/** `npm run prove -- orms`: people's own ORMs in `ctx.commit`, on both stores, in processes that die between effect and commit. */
import type { Programme, Proof, Terms } from "../programme.ts";
import { prepareApps } from "./apps.ts";
import { onPostgres } from "./postgres.ts";
import { onSqlite } from "./sqlite.ts";

export const orms: Programme = {
  name: "orms",
  what: "what ORMs write through ctx.commit is written exactly once, on both stores, by processes that die before the commit",
  async run(terms: Terms): Promise<Proof> {
    const problems = prepareApps(terms.say);
    if (problems.length > 0) return { count: 0, unit: "events", problems };
    const proofs = [await onSqlite(terms), await onPostgres(terms)];
    return {
      count: proofs.every(({ count }) => count > 0) ? proofs.reduce((sum, { count }) => sum + count, 0) : 0,
      unit: "events",
      problems: proofs.flatMap((proof) => proof.problems),
    };
  },
};
