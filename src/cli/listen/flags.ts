/** What the flags of `oncehook listen` say. */
import type { StoreFlags } from "../inbox-address.ts";
import type { OutputFlags } from "../terminal.ts";
import type { SecretFlags } from "./secrets.ts";

export interface ListenFlags extends StoreFlags, SecretFlags, OutputFlags {
  readonly port: number;
  readonly host: string;
  readonly path: string;
  readonly name?: string;
  readonly gapWait?: "balanced" | "strict" | "eager";
  readonly showContent?: boolean;
  readonly forwardTo?: string;
  readonly concurrency?: number;
  /** Milliseconds. */
  readonly timeout?: number;
}
