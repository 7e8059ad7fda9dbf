/** A server that does nothing and that nobody attacks: how late its answers are is the machine's own doing. */
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { answering } from "../prove/asked.ts";

const server = createServer((request, response) => void request.resume().once("end", () => response.end()));

answering(
  {
    listen: () =>
      new Promise((resolve) => server.listen(0, "127.0.0.1", () => resolve((server.address() as AddressInfo).port))),
  },
  () => server.closeAllConnections(),
);
