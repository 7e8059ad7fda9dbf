/** Where a world keeps its inbox, so that processes of it can end and others go on with what it holds. */

import type { Settle } from "../../../src/inbox/store.ts";
import type { InboxRules, InboxStore, Turn, TurnResult } from "../../../src/index.ts";
import { memoryStore } from "../../../src/stores/memory.ts";
import type { HandledEffect } from "../history.ts";
import type { AskedServer } from "./pace.ts";

/** A process's own way to the inbox. */
export interface Connection {
  readonly store: InboxStore<unknown>;
  /** As when its process has ended: the next one that opens knows, or leaves its leases to run out. */
  cut(isKnown: boolean): Promise<void>;
}

/** Whether a commit fails now: then nothing of its transaction is kept. */
export type CommitFails = () => boolean;

export interface Place {
  /** @param commitFails - asked at each commit of a batch. Default: none fails */
  connect(commitFails?: CommitFails): Connection;
  /** Writes in transaction `tx`, as a handler does through `ctx.commit`. */
  write(tx: unknown, effect: HandledEffect): unknown;
  /** In the order in which they were committed. */
  effects(): Promise<readonly HandledEffect[]>;
  /** What is asked there, if it is a server. */
  readonly server?: AskedServer;
  remove(): Promise<void>;
}

/** What a planted fault does to a memory place. */
export interface MemoryPlaceOptions {
  /** Effects of a lease that was lost are kept all the same. */
  readonly forgetsFencing?: boolean;
}

/** An inbox in memory with transactions: a turn and the effects in it happen in one go, and outlive their process. */
export class MemoryPlace implements Place {
  readonly #inner = memoryStore({ volatile: true });
  readonly #options: MemoryPlaceOptions;
  readonly #effects: HandledEffect[] = [];
  #opened: Promise<InboxRules> | null = null;
  #connections = 0;

  constructor(options: MemoryPlaceOptions = {}) {
    this.#options = options;
  }

  connect(commitFails: CommitFails = () => false): Connection {
    const inner = this.#inner;
    let isOpen = true;
    const letGo = async () => {
      if (isOpen) await this.#letGo();
      isOpen = false;
    };
    this.#connections += 1;
    return {
      store: {
        ...(inner as unknown as InboxStore<unknown>),
        capabilities: { durable: true, shared: true, transactional: true },
        open: (context) => {
          this.#opened ??= inner.open(context);
          return this.#opened;
        },
        step: async (turn) => {
          if (commitFails()) throw new Error("the commit failed");
          return this.#step(turn as Turn<HandledEffect[]>);
        },
        close: letGo,
      },
      cut: async (isKnown) => {
        if (isKnown) await letGo();
      },
    };
  }

  write(tx: unknown, effect: HandledEffect): void {
    (tx as HandledEffect[]).push(effect);
  }

  async effects(): Promise<readonly HandledEffect[]> {
    return this.#effects;
  }

  async remove(): Promise<void> {}

  /** Whoever opens it next after the last one has let go takes the leases over at once. */
  async #letGo(): Promise<void> {
    this.#connections -= 1;
    if (this.#connections > 0) return;
    await this.#inner.close();
    this.#opened = null;
  }

  async #step(turn: Turn<HandledEffect[]>): Promise<TurnResult> {
    const tried = turn.settles.map(tryEffects);
    const passed = tried.filter(({ error }) => error === null);
    // The inner step happens before it returns its promise, so that turns and their effects keep one order.
    const stepped = this.#inner.step({ ...turn, settles: passed.map(({ settle }) => settle) });
    const result = await stepped;
    const left = [...result.settled];
    const settled = tried.map(({ error, written, settle }): TurnResult["settled"][number] => {
      if (error !== null) return { status: "effect_failed", error };
      const answer = left.shift() ?? { status: "lost" };
      const counts = answer.status === "settled" || this.#options.forgetsFencing === true;
      if (counts) this.#effects.push(...written);
      return counts && settle.kind === "complete" ? { status: "settled" } : answer;
    });
    return { ...result, settled };
  }
}

interface Tried {
  /** Without its effects. */
  readonly settle: Settle<never>;
  readonly written: readonly HandledEffect[];
  readonly error: unknown;
}

function tryEffects(settle: Settle<HandledEffect[]>): Tried {
  if (settle.kind !== "complete") return { settle, written: [], error: null };
  const written: HandledEffect[] = [];
  const bare = { ...settle, effects: [] };
  try {
    for (const effect of settle.effects) if (typeof effect === "function") effect(written);
    return { settle: bare, written, error: null };
  } catch (error) {
    return { settle: bare, written: [], error };
  }
}
