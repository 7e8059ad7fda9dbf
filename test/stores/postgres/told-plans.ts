/** How the server ran each statement of a pool. */
import { Pool } from "pg";

interface Plan {
  readonly "Node Type": string;
  readonly "Relation Name"?: string;
  readonly Plans?: readonly Plan[];
  readonly "Shared Hit Blocks"?: number;
  readonly "Shared Read Blocks"?: number;
}

export interface Run {
  readonly "Query Text": string;
  readonly Plan: Plan;
}

/** The server tells how it ran each statement: a plan that is asked for beside it could be another one. */
const TELL = `load 'auto_explain'; set auto_explain.log_min_duration = 0; set auto_explain.log_analyze = on; set auto_explain.log_timing = off;
  set auto_explain.log_buffers = on; set auto_explain.log_format = json; set auto_explain.log_level = notice`;

/** A pool of whose statements `runs` gets to know. */
export function toldPool(connectionString: string, runs: Run[]): Pool {
  const pool = new Pool({ connectionString, max: 3 });
  pool.on("connect", (client) => {
    client.on("notice", ({ message = "" }) => {
      const [, plan] = /^duration: .* plan:\n(.*)$/s.exec(message) ?? [];
      if (plan !== undefined) runs.push(JSON.parse(plan));
    });
    void client.query(TELL);
  });
  return pool;
}

/** The tables that it reads whole. */
export const scannedIn = (plan: Plan) =>
  nodesOf(plan)
    .filter((node) => node["Node Type"] === "Seq Scan" && /^(?:lane|event|body)$/.test(node["Relation Name"] ?? ""))
    .map((node) => node["Relation Name"] ?? "");

/**
 * Of the scan that read most: a row that is written or locked has its pages beside what was read to find it. A `CTE Scan` has those of
 * the statement that it stands for.
 */
export const pagesOf = (plan: Plan) =>
  Math.max(
    0,
    ...nodesOf(plan)
      .filter(({ "Node Type": type }) => type.includes("Scan") && type !== "CTE Scan")
      .map((node) => (node["Shared Hit Blocks"] ?? 0) + (node["Shared Read Blocks"] ?? 0)),
  );

function nodesOf(plan: Plan): Plan[] {
  return [plan, ...(plan.Plans ?? []).flatMap(nodesOf)];
}
