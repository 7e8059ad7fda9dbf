/** Webhooks in a NestJS application: stored in a SQLite file, then handled once and in order by a provider. */
import "reflect-metadata";
import { Inject, Injectable, Module, type OnApplicationBootstrap, type OnApplicationShutdown } from "@nestjs/common";
import { NestFactory } from "@nestjs/core";
import { createReceiver } from "oncehook";
import { expressWebhook } from "oncehook/express";
import { sqliteStore } from "oncehook/sqlite";

/** One of your services. */
@Injectable()
class Messages {
  update(messageId: string, eventType: string): void {
    console.log("handled", eventType, messageId);
  }
}

@Injectable()
class Webhooks implements OnApplicationBootstrap, OnApplicationShutdown {
  readonly receiver = createReceiver({
    secrets: process.env.WEBHOOK_SECRET ?? "",
    store: sqliteStore(process.env.INBOX_PATH ?? "inbox.db"),
  });

  // Named, because tsx does not pass the types of parameters on to Nest.
  constructor(@Inject(Messages) messages: Messages) {
    this.receiver.on(["message.queued", "message.sent", "message.delivery", "message.failed"], (event) =>
      messages.update(event.messageId, event.eventType),
    );
    this.receiver.on("message.inbound", (event) => messages.update(event.data.messageId, event.eventType));
    this.receiver.onLate((event) => console.log("late", event.eventType)); // A newer event of the message was handled.
  }

  async onApplicationBootstrap(): Promise<void> {
    await this.receiver.start();
  }

  /** Nest calls it after the server has closed. */
  async onApplicationShutdown(): Promise<void> {
    await this.receiver.stop();
  }
}

@Module({ providers: [Messages, Webhooks] })
class AppModule {}

const port = Number(process.env.PORT ?? 3000);
const app = await NestFactory.create(AppModule, { logger: ["error", "warn"], forceCloseConnections: true });
app.use("/webhooks", expressWebhook(app.get(Webhooks).receiver)); // Nest adds its body parsers later, in listen().
app.enableShutdownHooks();
await app.listen(port);
console.log(`Listening on http://127.0.0.1:${port}/webhooks`);
