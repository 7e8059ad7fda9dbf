/** The line by which a person or a script learns where an example listens. */
import type { Server } from "node:http";

/** Prints `{"listening":"http://127.0.0.1:12345"}`. */
export function announce(server: Server): void {
  const address = server.address();
  if (address === null || typeof address === "string") throw new Error("The server listens on no port.");
  announcePort(address.port);
}

/** The same, where somebody else has the server. */
export function announcePort(port: number): void {
  console.log(JSON.stringify({ listening: `http://127.0.0.1:${port}` }));
}
