/** Runs both functions on this machine: `webhooks` for each HTTP request, as API Gateway calls it, and `drain` every second. */
import { once } from "node:events";
import { createServer } from "node:http";
import { setInterval } from "node:timers/promises";
import type { LambdaEvent } from "hono/aws-lambda";
import { drain, webhooks } from "./functions.ts";

const port = Number(process.env.PORT ?? 3000);
const server = createServer(async (request, response) => {
  const { method = "GET", url = "/", headers } = request;
  const body = Buffer.concat(await request.toArray()).toString("base64");
  const http = { method, path: url, protocol: "HTTP/1.1", sourceIp: "127.0.0.1", userAgent: "" };
  const event = { version: "2.0", rawPath: url, rawQueryString: "", headers, body, isBase64Encoded: true };
  const answer = await webhooks({ ...event, requestContext: { http } } as unknown as LambdaEvent);
  response.writeHead(answer.statusCode, answer.headers);
  response.end(Buffer.from(answer.body, answer.isBase64Encoded ? "base64" : "utf8"));
});
await once(server.listen(port), "listening");
console.log(`Listening on http://127.0.0.1:${port}/webhooks`);
for await (const _ of setInterval(1_000)) await drain();
