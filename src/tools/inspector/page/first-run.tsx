/** What to do with an inbox that has no event: the command that sends one. */
import { CopyButton } from "./acts.tsx";

/** `oncehook inspect` serves the page on a port of its own, below a path that nobody can guess. */
const OWN_SERVER = /^\/inspector-[\w-]{16,}/;

/** Sends the events of a message. An inspector in an application is at the receiver's own address; its path is that of the documentation. */
export function triggerCommand({ origin, pathname }: Pick<Location, "origin" | "pathname">): string {
  const address = OWN_SERVER.test(pathname) ? "http://127.0.0.1:3000" : origin;
  return `npx oncehook trigger lifecycle --to ${address}/webhooks`;
}

export function FirstRun() {
  const command = triggerCommand(location);
  return (
    <section class="empty">
      <h2>No events yet</h2>
      <p>Each event is listed here as soon as your receiver has stored it. Send the three events of a test message:</p>
      <p class="command">
        <code>{command}</code> <CopyButton text={command} label="Copy" />
      </p>
      <p>The command asks for your webhook secret. If your receiver has another address, change it after --to.</p>
    </section>
  );
}
