/** A process that claims an event and is killed while it holds the lease. */
import { sqliteStore } from "../../src/stores/sqlite.ts";
import { contextOf, event, turn } from "./sqlite-turns.ts";

const [path = ""] = process.argv.slice(2);

const store = sqliteStore(path);
await store.open(contextOf());
const accepts = [event("held")];
const { leases } = await store.step(turn({ accepts, claim: { limit: 1, leaseMs: 3_600_000 } }));
process.stdout.write(`${JSON.stringify(leases[0]?.event)}\n`);
setInterval(() => {}, 1_000_000);
