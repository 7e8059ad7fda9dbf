/** A process with little memory, whose service answers lists of millions of wrong items: prints what the client tells of each. */
import { createClient, ResponseValidationError } from "../../../src/messaging/client/index.ts";

const ITEMS = 1_500_000;
const ones = `[${"1,".repeat(ITEMS - 1)}1]`;
const LISTS = `{"numbers":${ones}}`;
const NESTED = `{"groups":[{"rateCenter":"X","count":1,"numbers":${ones}}],"requestedQuantity":1}`;

const client = createClient({
  baseUrl: "https://api.example.com",
  clientId: "client_1",
  clientSecret: "a-secret",
  validateResponses: "throw",
  async fetch(input) {
    const path = String(input);
    if (path.endsWith("/api/auth/token")) return Response.json({ access_token: "token" });
    return new Response(path.includes("search") ? NESTED : LISTS);
  },
});
const told: (readonly string[])[] = [];
for (const call of [() => client.numbers.list(), () => client.numbers.search()]) {
  const error: unknown = await call().catch((reason: unknown) => reason);
  if (error instanceof ResponseValidationError) told.push(error.issues);
}
process.stdout.write(JSON.stringify(told));
