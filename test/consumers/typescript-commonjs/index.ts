// TypeScript that compiles to CommonJS, with NodeNext resolution: types and run time agree.
import express from "express";
import { createReceiver, type OncehookError, SetupError, signPayload, verifySignature } from "oncehook";
import { expressWebhook } from "oncehook/express";
import { memoryStore } from "oncehook/memory";

const secret = "a-consumer-secret-of-32-characters";
const verdict = verifySignature({ headers: signPayload({ body: "{}", secret }), body: "{}", secrets: secret });
if (!verdict.ok) throw new Error(verdict.code);
console.log("ok verify");

const receiver = createReceiver({ secrets: secret, store: memoryStore(), ack: "handled" });
receiver.on("message.delivery", async (event) => {
  const sequence: number = event.sequence;
  const status: string = event.data.status;
  // @ts-expect-error an event has no such field
  console.log(sequence, status, event.data.nothing);
});
express().all("/webhooks", expressWebhook(receiver));
console.log("ok mount");

try {
  // @ts-expect-error a misspelled option is refused by the types and at run time
  createReceiver({ secret });
} catch (error) {
  const known: OncehookError | undefined = error instanceof SetupError ? error : undefined;
  if (known === undefined) throw error;
  console.log(`ok refused ${known.code}`);
}
