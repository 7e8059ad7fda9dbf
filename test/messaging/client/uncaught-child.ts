/** An application that catches nothing: its send is refused. */
import { createClient } from "../../../src/messaging/client/index.ts";

const client = createClient({
  baseUrl: process.env.SERVICE_BASE_URL ?? "",
  clientId: process.env.SERVICE_CLIENT_ID ?? "",
  clientSecret: process.env.SERVICE_CLIENT_SECRET ?? "",
});
await client.messages.send({
  sendFrom: "num_unknown",
  to: ["+14155550123"],
  messageType: "SMS",
  text: "marked text",
  externalReference: "order-1",
});
